"""Features and the directions in which they vary most."""

import pytest
import torch

from clarinet.data.images import normalised
from clarinet.data.seeding import generator
from clarinet.networks.classifier import SOURCE, TARGET, Classifier, ModelSpec
from clarinet.run.feature_map import features_of, pixels_at, principal_components, sample_rows


def test_points_on_a_line_have_one_component() -> None:
    # (0, 0), (3, 4), (6, 8): 5 apart, along (0.6, 0.8).
    found = principal_components(torch.tensor([[6.0, 8.0], [0.0, 0.0], [3.0, 4.0]]), most=32)

    torch.testing.assert_close(found.places, torch.tensor([[5.0, 0.0], [-5.0, 0.0], [0.0, 0.0]]))
    assert found.shares.tolist() == pytest.approx([1.0, 0.0])


@pytest.mark.parametrize(("count", "width"), [(40, 7), (7, 40)])
def test_components_are_those_of_the_singular_values(count: int, width: int) -> None:
    features = torch.randn(count, width, generator=generator(0, "features"))

    found = principal_components(features, most=3)

    centred = features.double() - features.double().mean(0)
    values = torch.linalg.svdvals(centred)
    assert found.shares.tolist() == pytest.approx((values**2 / (values**2).sum())[:3].tolist())
    torch.testing.assert_close(found.places.double().square().sum(0), values[:3] ** 2, rtol=1e-5, atol=0)
    torch.testing.assert_close(
        found.places.T @ found.places, torch.diag(found.places.square().sum(0)), atol=1e-4, rtol=0
    )
    again = principal_components(features, most=3)
    assert torch.equal(found.places, again.places)
    mirrored = principal_components(torch.cat([features, features]), most=3)
    torch.testing.assert_close(mirrored.places[:count], found.places, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("features", [torch.ones(1, 5), torch.zeros(4, 3), torch.ones(3, 1)])
def test_features_that_do_not_vary_lie_in_one_place(features: torch.Tensor) -> None:
    found = principal_components(features, most=32)

    assert found.places.shape[1] >= 2
    assert not found.places.any()
    assert not found.shares.any()


def test_a_sample_is_always_the_same_one_and_not_evenly_spread() -> None:
    rows = sample_rows(60_000, most=1000)

    assert torch.equal(rows, sample_rows(60_000, most=1000))
    assert len(set(rows.tolist())) == len(rows) == 1000
    assert torch.equal(rows, rows.sort().values)
    # Images whose classes take turns: every class is there.
    assert (rows % 10).bincount(minlength=10).min() > 60
    assert sample_rows(3, most=1000).tolist() == [0, 1, 2]


def test_features_are_those_that_the_classes_are_read_off() -> None:
    spec = ModelSpec(
        architecture="dann",
        channels=3,
        image_size=28,
        input_normalisation="range",
        norm_per_domain=True,
        num_classes=4,
    )
    model = Classifier(spec).train()
    images = torch.randint(256, (6, 16, 16, 3), generator=generator(0, "images"), dtype=torch.uint8)
    pixels = pixels_at(model, images, torch.tensor([4, 1]))

    source, target = (features_of(model, pixels, domain=domain) for domain in (SOURCE, TARGET))

    assert model.training
    assert isinstance(pixels, torch.Tensor)
    with torch.inference_mode():
        expected, _ = model.eval()(normalised(pixels.float() / 255, "range"), SOURCE)
    torch.testing.assert_close(source, expected)
    assert source.shape == target.shape == (2, model.extractor.features)
