"""Large pictures: the same pixels as ever, in little memory."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image, ImageCms

from clarinet import save_model, train
from clarinet.data import images as resizing
from clarinet.data.images import resized
from clarinet.files import depths, pictures
from clarinet.files.pictures import decoded
from clarinet.networks.classifier import ModelSpec
from tests.clarinet.factories import make_config, make_data, noisy_levels

MOST_MB = 300  # that one large picture may add to the peak
# That of sRGB under another name, so that it is applied.
PROFILE = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
PROFILE = PROFILE.replace("sRGB".encode("utf-16-be"), "mine".encode("utf-16-be"))


def spec(channels: int, greying: Any = "luminance") -> ModelSpec:
    return ModelSpec(
        architecture="lenet" if channels == 1 else "dann",
        channels=channels,
        image_size=32,
        input_normalisation="range",
        norm_per_domain=False,
        num_classes=2,
        greying=greying,
    )


@pytest.mark.parametrize("size", [(211, 97), (97, 211), (64, 64), (20, 500)])
@pytest.mark.parametrize(("planes", "channels"), [(3, 3), (3, 1), (1, 3), (1, 1)])
def test_a_large_array_is_resized_to_the_same_bytes_in_bands(
    size: tuple[int, int], planes: int, channels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    images = noisy_levels(2, *size, 3)
    images = images if planes == 3 else images[..., 0]
    whole = resized(images, spec(channels))

    monkeypatch.setattr(resizing, "CHUNK_PIXELS", 1000)
    monkeypatch.setattr(resizing, "BAND_PIXELS", 700)

    assert torch.equal(resized(images, spec(channels)), whole)


@pytest.mark.parametrize("greying", ["ink", "dark-ink"])
def test_ink_is_seen_against_the_ground_of_the_whole(greying: str, monkeypatch: pytest.MonkeyPatch) -> None:
    images = noisy_levels(2, 80, 60, 3)
    images[0, 30:] //= 8  # the furthest pixel of the first is in its upper part
    whole = resized(images, spec(1, greying))

    monkeypatch.setattr(resizing, "CHUNK_PIXELS", 1000)
    monkeypatch.setattr(resizing, "BAND_PIXELS", 700)

    assert torch.equal(resized(images, spec(1, greying)), whole)


def made(mode: str) -> Image.Image:
    """A picture of noise in a mode, of 60 by 90 pixels."""
    colours = noisy_levels(90, 60, 4).numpy()
    if mode == "I;16":
        return Image.fromarray(colours[..., :2].copy().view(np.uint16)[..., 0])
    if mode in {"P", "1", "CMYK", "LA"}:
        return Image.fromarray(colours, "RGBA").convert("RGB" if mode != "LA" else "LA").convert(mode)
    return Image.fromarray(colours[..., : len(mode)] if len(mode) > 1 else colours[..., 0])


@pytest.mark.parametrize("mode", ["L", "LA", "RGB", "RGBA", "P", "1", "I;16", "CMYK"])
@pytest.mark.parametrize("turn", [1, 3, 6])
def test_a_large_file_has_the_same_pixels_in_bands(
    mode: str, turn: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "picture.tif"
    exif = Image.Exif()
    exif[pictures.ORIENTATION] = turn
    made(mode).save(path, exif=exif)
    options: list[dict[str, Any]] = [
        {"side": side, "colour": c} for side in (None, 28) for c in (None, True, False)
    ]
    whole = [decoded(path, **option) for option in options]

    monkeypatch.setattr(depths, "BAND_PIXELS", 500)

    for before, option in zip(whole, options, strict=True):
        assert np.array_equal(decoded(path, **option), before)


@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_a_profile_and_a_transparent_colour_hold_in_every_band(
    mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = made(mode).getpixel((0, 0))
    assert pictures._transform(PROFILE, "RGB") is not None
    made(mode).save(tmp_path / "a.png", transparency=first, icc_profile=PROFILE)
    whole = decoded(tmp_path / "a.png", side=None)

    monkeypatch.setattr(depths, "BAND_PIXELS", 500)

    assert np.array_equal(decoded(tmp_path / "a.png", side=None), whole)
    assert (whole[0, 0] == 255).all()


def peak_mb(folder: Path, picture: Path) -> float:
    """The peak of a fresh process that predicts a picture, in megabytes."""
    words = ["predict", "--model", str(folder / "m"), "--images", str(picture), "--device", "cpu"]
    code = (
        "import resource, sys; from clarinet.commands.cli import main; "
        f"assert main({[*words, '--out', str(folder / 'out.csv')]!r}) == 0; "
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        text=True,
        env=os.environ,
        cwd=Path.cwd(),
    )
    return int(done.stdout.split()[-1]) * 1024 / 1e6  # Linux counts in kibibytes


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, float]:
    """A folder with a model, and the peak of a process that predicts a small picture."""
    folder = tmp_path_factory.mktemp("model")
    save_model(
        folder / "m" / "model.safetensors", train(make_config(epochs=1, pretraining_share=0), make_data())
    )
    Image.fromarray(noisy_levels(128, 128, 3).numpy()).save(folder / "small.png")
    return folder, peak_mb(folder, folder / "small.png")


@pytest.mark.long
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="peaks are counted in other units elsewhere")
@pytest.mark.parametrize("ending", ["png", "jpg"])
def test_a_picture_of_24_megapixels_takes_little_memory(
    ending: str, model: tuple[Path, float], tmp_path: Path
) -> None:
    folder, small = model
    large = tmp_path / f"large.{ending}"
    Image.fromarray(noisy_levels(4000, 6000, 3).numpy()).save(large, compress_level=1)

    assert peak_mb(folder, large) - small < MOST_MB
