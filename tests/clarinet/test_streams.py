"""Images read from disk while a run trains: equal to those in memory, flat in memory, faults in words."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from clarinet.data import feeding
from clarinet.data.digits import ink_spread
from clarinet.data.domains import prepare
from clarinet.data.feeding import Feed, Pixels, StreamedImages, parts, pixels_of, taken
from clarinet.data.fingerprint import fingerprint
from clarinet.data.inputs import Inputs
from clarinet.data.streams import ImageStream
from clarinet.data.training_data import TrainData
from clarinet.networks.classifier import spec_for
from clarinet.recipes.errors import CheckpointMismatch, DataError, Interrupted
from clarinet.recipes.methods import config_for
from clarinet.run.evaluation import predict
from clarinet.run.tensor_files import read_tensors
from clarinet.run.training import train
from tests.clarinet.factories import (
    Recorded,
    equal_weights,
    make_config,
    make_data,
    make_images,
    noisy_levels,
    saved,
)

CPU = torch.device("cpu")


def streamed_images(stream: ImageStream, size: int = 28) -> StreamedImages:
    colour = len(stream.shape) == 4
    return StreamedImages(
        stream, spec_for(config_for("clarinet", image_size=size), colour=colour, num_classes=2), CPU
    )


def on_disk(data: TrainData, folder: Path) -> TrainData:
    """The same data with every image in files."""

    def moved(name: str) -> ImageStream | None:
        images = getattr(data, name)
        return None if images is None else saved(folder / f"{name}.npy", images)

    names = ("source_images", "target_images", "target_test_images")
    others = {
        name: getattr(data, name)
        for name in (
            "complementary",
            "true",
            "weights",
            "example",
            "held_out",
            "target_test_labels",
            "num_classes",
        )
    }
    source, target, test = (moved(name) for name in names)
    assert source is not None
    assert target is not None
    return TrainData(source_images=source, target_images=target, target_test_images=test, **others)


class TestRuns:
    @pytest.mark.long(but=["clarinet-changes2-data2"])
    @pytest.mark.parametrize(
        ("method", "changes", "data"),
        [
            ("clarinet-plus", {}, {}),  # the inks' extents are matched
            ("clarinet-plus", {}, {"colour_target": True}),  # grounds are drawn from the target
            ("clarinet", {"setting": "pc", "image_size": 20}, {"true_rows": 20}),
        ],
    )
    def test_a_streamed_run_is_bit_equal_to_one_in_memory(
        self, method: str, changes: dict[str, Any], data: dict[str, Any], tmp_path: Path
    ) -> None:
        config, resident = make_config(method, **changes), make_data(**data)

        one, other = train(config, resident), train(config, on_disk(resident, tmp_path))

        assert equal_weights(one.model, other.model)
        assert [r.target_accuracy for r in one.reports] == [r.target_accuracy for r in other.reports]
        assert one.confusion == other.confusion

    @pytest.mark.long(but=["float32"])
    @pytest.mark.parametrize("precision", ["float32", "bfloat16"])
    def test_it_is_also_of_colour_images_that_are_resized(self, precision: str, tmp_path: Path) -> None:
        looks = {"architecture": "dann", "image_size": 32, "input_normalisation": "instance"}
        config = make_config("clarinet", precision=precision, **looks)
        resident = make_data(
            48,
            source_images=noisy_levels(48, 48, 48, 3),
            target_images=noisy_levels(40, 48, 48, 3),
            target_test_images=noisy_levels(48, 48, 48, 3),
            target_test_labels=torch.arange(48) % 3,
        )

        one, other = train(config, resident), train(config, on_disk(resident, tmp_path))

        assert equal_weights(one.model, other.model)
        assert [r.losses for r in one.reports] == [r.losses for r in other.reports]

    @pytest.mark.long
    def test_a_streamed_run_resumes_and_refuses_other_images(self, tmp_path: Path) -> None:
        config, data = make_config(), on_disk(make_data(), tmp_path)
        whole = train(config, data)
        steps = iter(range(7))
        with pytest.raises(Interrupted):
            train(config, data, checkpoint=tmp_path / "run", should_stop=lambda: next(steps, None) is None)
        (tmp_path / "other").mkdir()

        with pytest.raises(CheckpointMismatch, match="other images"):
            train(config, on_disk(make_data(seed=5), tmp_path / "other"), checkpoint=tmp_path / "run")
        resumed = train(config, data, checkpoint=tmp_path / "run")

        assert equal_weights(whole.model, resumed.model)
        assert read_tensors(tmp_path / "run", kind="checkpoint")[1]["step"] == 12

    def test_predictions_are_those_of_images_in_memory(self, tmp_path: Path) -> None:
        result = train(make_config(epochs=1), make_data())
        images = noisy_levels(70, 33, 20, 3)

        assert torch.equal(predict(result, saved(tmp_path / "x.npy", images)), predict(result, images))
        assert predict(result, saved(tmp_path / "none.npy", images[:0])).shape == (0, 3)

    @pytest.mark.long
    @pytest.mark.parametrize(
        ("counts", "side", "labels", "changes"),
        [
            ((3_413, 349_525), 32, 349_525, {"epochs": 1}),  # too short for an encoder; a label an image
            pytest.param(
                (2_048, 6_991),
                160,
                380,
                {"epochs": 2, "pretraining_share": 0.5, "image_size": 32},
                marks=pytest.mark.slow,
            ),
        ],
        ids=["labels", "encoder"],
    )
    def test_memory_does_not_grow_with_the_data(
        self, counts: tuple[int, int], side: int, labels: int, changes: dict[str, Any], tmp_path: Path
    ) -> None:
        """Two runs in one process: its peak after a sparse file of 1 or 0.5 GB is that after a small one."""
        code = f"""
import numpy as np, torch
from pathlib import Path
from clarinet import NpyImages, TrainData, config_for, train
def peak():
    return next(int(line.split()[1]) // 1024 for line in open("/proc/self/status") if "VmHWM" in line)
peaks = []
for count in {counts}:
    path = Path({str(tmp_path)!r}) / f"{{count}}.npy"
    np.lib.format.open_memmap(path, mode="w+", dtype=np.uint8, shape=(count, {side}, {side}, 3))
    labels = min(count, {labels})
    data = TrainData(
        source_images=NpyImages(path), target_images=NpyImages(path),
        complementary=torch.arange(labels) % 3, true=torch.full((labels,), -1), weights=torch.ones(labels),
        example=torch.arange(labels), num_classes=3,
    )
    config = config_for(  # in batches of one size: a large source's are larger otherwise
        "clarinet-plus", steps_per_epoch=4, held_out_share=0.01, step_share=0.0, **{changes}
    )
    train(config, data, checkpoint=path.with_suffix(".run"))
    peaks.append(peak())
print(*peaks)
"""
        ended = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
        small, large = map(int, ended.stdout.split())

        assert (tmp_path / f"{counts[1]}.npy").stat().st_size > 2**29
        # MB: labels, orders and features, some hundred bytes an image, and what a larger heap scatters.
        assert large - small < 150


@pytest.mark.parametrize("size", [28, 32])  # as the images are, and resized
def test_images_in_memory_lie_on_the_device_whole_as_bytes(size: int) -> None:
    device = torch.device("meta")  # takes shapes and types, and tells itself from the CPU

    domains = prepare(make_data(20, colour_target=True), make_config(image_size=size), device)

    for images in (domains.source, domains.target, domains.test):
        assert isinstance(images, Tensor)
        assert (images.dtype, images.device) == (torch.uint8, device)
        assert images.shape == (20, 3, size, size)


class TestFeed:
    def test_batches_are_read_ahead_by_other_threads_and_once(self) -> None:
        stream = Recorded(noisy_levels(64, 28, 28))
        rows = torch.arange(64)
        config = make_config()
        feed = Feed(
            streamed_images(stream),
            rows,
            rows,
            batch_size=config.length.batch_size,
            seed=config.seed,
            stream="x",
        )
        in_memory = Feed(
            stream.images[:, None],
            rows,
            rows,
            batch_size=config.length.batch_size,
            seed=config.seed,
            stream="x",
        )

        for step in (0, 0, 1, 2, 3):  # two losses may ask for one step's images
            for got, expected in zip(
                feed.batch(Inputs(step, CPU)), in_memory.batch(Inputs(step, CPU)), strict=True
            ):
                assert torch.equal(got, expected)

        wait_for_readers(feed)
        assert len(stream.reads) == 3 + 1 + feeding.AHEAD
        assert all(name.startswith("clarinet-images") for name in stream.threads)

    def test_batches_that_are_taken_now_and_then_are_all_that_is_read(self) -> None:
        stream, rows = Recorded(noisy_levels(64, 28, 28)), torch.arange(64)
        feed = Feed(streamed_images(stream), rows, rows, batch_size=16, seed=0, stream="x")

        for step in range(0, 100, 10):
            feed.batch(Inputs(step, CPU))

        wait_for_readers(feed)
        assert len(stream.reads) == 10

    def test_a_run_resumed_at_a_step_reads_that_steps_images(self) -> None:
        stream, rows = Recorded(noisy_levels(64, 28, 28)), torch.arange(64)
        fresh = Feed(streamed_images(stream), rows, rows, batch_size=16, seed=0, stream="x")
        walked = Feed(streamed_images(stream), rows, rows, batch_size=16, seed=0, stream="x")
        for step in range(30):
            expected = walked.batch(Inputs(step, CPU))

        assert torch.equal(fresh.batch(Inputs(29, CPU))[1], expected[1])

    def test_labels_lead_to_their_images(self) -> None:
        images, example = noisy_levels(4, 28, 28), torch.tensor([3, 3, 1, 0, 2, 0])
        rows = torch.tensor([0, 2, 5])

        for pixels in (images[:, None], streamed_images(Recorded(images))):
            index, levels = Feed(pixels, rows, example, batch_size=3, seed=0, stream="x").batch(
                Inputs(0, CPU)
            )

            assert sorted(index.tolist()) == [0, 2, 5]
            assert torch.equal(levels[:, 0], images[example[index]])


def wait_for_readers(feed: Feed) -> None:
    for reading in feed._reading.values():
        reading.result()


@pytest.mark.parametrize("size", [1, 4, 100])
def test_parts_are_all_images_in_order_also_of_selected_rows(size: int) -> None:
    images, rows = noisy_levels(23, 28, 28), torch.tensor([5, 5, 0, 22, 7])
    stream = streamed_images(Recorded(images))

    assert torch.equal(torch.cat(list(parts(stream, size))), images[:, None])
    assert torch.equal(torch.cat(list(parts(stream[rows], size))), images[rows][:, None])
    assert torch.equal(taken(stream[rows], torch.tensor([3, 0])), images[torch.tensor([22, 5])][:, None])
    assert not list(parts(stream[rows[:0]], size))


def test_batches_and_parts_lie_in_memory_as_those_of_a_tensor() -> None:
    images, rows = noisy_levels(23, 48, 48, 3), torch.arange(23)
    spec = spec_for(config_for("clarinet", architecture="dann", image_size=32), colour=True, num_classes=2)
    resident, streamed = pixels_of(images, spec, CPU), StreamedImages(Recorded(images), spec, CPU)

    ways: list[Callable[[Pixels], Tensor]] = [
        lambda pixels: Feed(pixels, rows, rows, batch_size=8, seed=0, stream="x").batch(Inputs(0, CPU))[1],
        lambda pixels: taken(pixels, rows[:8]),
        lambda pixels: next(iter(parts(pixels, 8))),
        lambda pixels: next(iter(parts(pixels[rows[3:]], 8))),
    ]
    for take in ways:
        one, other = take(resident), take(streamed)
        assert torch.equal(one, other)
        assert one.stride() == other.stride()


def test_the_inks_extent_is_the_same_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    images = make_images(torch.arange(30) % 3)
    whole = ink_spread(images[:, None])
    monkeypatch.setattr("clarinet.data.digits.CHUNK", 7)

    assert ink_spread(streamed_images(Recorded(images))) == pytest.approx(whole)


class TestFingerprint:
    def test_it_tells_other_images_and_other_numbers_of_them(self, tmp_path: Path) -> None:
        data = make_data()

        def digest(images: Tensor) -> str:
            tmp_path.joinpath("x").mkdir(exist_ok=True)
            target = saved(tmp_path / "x" / "target.npy", images)
            return fingerprint(
                make_data(target_images=target, target_test_images=None, target_test_labels=None)
            )

        images = data.target_images
        assert isinstance(images, Tensor)
        changed = images.clone()
        changed[-1] += 1
        assert digest(images) == digest(images)
        assert len({digest(images), digest(changed), digest(images[:-1])}) == 3


class TestRefusals:
    @pytest.mark.parametrize("shape", [(3, 4), (3, 4, 4, 4), (0, 4, 4)])
    def test_a_stream_of_no_images(self, shape: tuple[int, ...]) -> None:
        stream = Recorded(torch.zeros(shape, dtype=torch.uint8))

        with pytest.raises(DataError, match="target_images"):
            make_data(target_images=stream, target_test_images=None, target_test_labels=None)

    def test_a_stream_that_reads_something_else(self) -> None:
        stream = Recorded(torch.zeros(8, 28, 28))  # float

        with pytest.raises(DataError, match=r"Recorded read torch\.float32"):
            taken(streamed_images(stream), torch.arange(4))
