"""The references beside runs of photographs: heads on true classes."""

from pathlib import Path

import pytest
import torch
import torchvision

from clarinet.recipes.methods import config_for
from clarinet.reproduction.readers import PACS_CLASSES
from clarinet.reproduction.references import head_accuracy, references
from clarinet.reproduction.tasks import task_called
from tests.clarinet.test_readers import write_pacs


def test_a_head_learns_what_is_linear_and_no_more() -> None:
    draws = torch.Generator().manual_seed(0)
    features = torch.randn(200, 5, generator=draws)
    linear = (features[:, 0] > 0.2).long()
    crossed = ((features[:, 0] > 0) ^ (features[:, 1] > 0)).long()

    features = 40 * features + 3  # which standardising takes off

    assert head_accuracy((features[:150], linear[:150]), (features[150:], linear[150:]), 2) > 0.95
    assert head_accuracy((features[:150], crossed[:150]), (features[150:], crossed[150:]), 2) < 0.75


@pytest.mark.long
def test_both_references_of_a_pair(tmp_path: Path) -> None:
    weights = tmp_path / "net.pth"
    torch.save(torchvision.models.get_model("mobilenet_v3_small", weights=None).state_dict(), weights)
    for look, brightness in (("photo", 200), ("sketch", 40)):
        write_pacs(tmp_path / f"pacs_{look}.zip", PACS_CLASSES, brightness)
    config = config_for(
        "clarinet-plus",
        "photographs-quick",
        architecture="mobilenet_v3_small",
        pretrained=str(weights),
        image_size=32,
    )

    found = references([task_called("photo-sketch")], tmp_path, config)

    # All images of a domain are alike, and no class is in both parts of the target.
    assert list(found) == ["photo->sketch"]
    by_source, ceiling = found["photo->sketch"]
    assert (by_source, ceiling) == pytest.approx((1 / 7, 0.0))
