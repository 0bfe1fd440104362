"""Image files of every kind: the network sees what the application shows to people."""

import io
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image, ImageOps

from app.datasets.intake.pictures import picture_of_file
from clarinet import ImageFiles
from clarinet.data.folders import read_images
from clarinet.files.pictures import decoded
from clarinet.recipes.errors import DataError

INK = np.zeros((8, 8), np.uint8)
COVER = np.where(np.arange(64).reshape(8, 8) % 3 == 0, 255, 0).astype(np.uint8)  # opaque where it is 255
DEEP = np.linspace(0, 65535, 64).astype(np.uint16).reshape(8, 8)


def drawn_on_nothing(mode: str) -> Image.Image:
    """Black strokes, and nothing around them."""
    picture = Image.merge("LA", (Image.fromarray(INK), Image.fromarray(COVER)))
    return picture.convert(mode) if mode != "P" else picture.convert("RGBA").quantize()


@pytest.mark.parametrize("mode", ["LA", "RGBA", "P"])
def test_transparent_parts_are_white_as_for_people(mode: str, tmp_path: Path) -> None:
    drawn_on_nothing(mode).save(tmp_path / "x.png")

    pixels = decoded(tmp_path / "x.png", side=None)

    assert np.array_equal(pixels if pixels.ndim == 2 else pixels[..., 0], 255 - COVER)
    assert (pixels.ndim == 2) == (mode == "LA")
    [streamed] = ImageFiles([tmp_path / "x.png"], image_size=8, colour=False).read(torch.tensor([0]))
    assert np.array_equal(streamed.numpy(), 255 - COVER)


def test_sixteen_bits_become_eight_and_stay_grey(tmp_path: Path) -> None:
    Image.fromarray(DEEP).save(tmp_path / "x.png")

    [pixels] = read_images([tmp_path / "x.png"], side=8)

    assert pixels.ndim == 2
    assert np.abs(pixels.numpy() - DEEP / 257).max() <= 0.5


@pytest.mark.parametrize("suffix", ["png", "webp"])
@pytest.mark.parametrize("exif", [b"garbage", b"Exif\x00\x00MM\x00*\x00\x00"])
def test_a_picture_of_a_camera_whose_notes_are_broken_is_taken_as_it_is_stored(
    suffix: str, exif: bytes, tmp_path: Path
) -> None:
    path, picture = tmp_path / f"x.{suffix}", Image.fromarray(COVER).convert("RGB")
    picture.save(path, exif=exif, lossless=True)

    assert np.array_equal(decoded(path, side=None), np.asarray(picture))
    stored = Image.open(io.BytesIO(picture_of_file(path.read_bytes(), "x").data))
    assert np.array_equal(np.asarray(stored), np.asarray(picture))


@pytest.mark.parametrize("orientation", range(1, 9))
def test_it_is_turned_as_pillow_turns_it(orientation: int, tmp_path: Path) -> None:
    path, exif = tmp_path / "x.png", Image.Exif()
    exif[0x0112] = orientation
    Image.fromarray(COVER[:5]).save(path, exif=exif)
    with Image.open(path) as opened:
        turned = np.asarray(ImageOps.exif_transpose(opened))

    assert np.array_equal(decoded(path, side=None), turned)
    stored = Image.open(io.BytesIO(picture_of_file(path.read_bytes(), "x").data))
    assert np.array_equal(np.asarray(stored), turned)


def test_a_picture_is_turned_though_other_notes_of_its_camera_are_broken(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112], exif[0x0100] = 6, 7
    broken = exif.tobytes().replace(b"\x01\x00\x00\x04", b"\x01\x00\x00\x02")  # a width that is text
    Image.fromarray(COVER[:5]).save(tmp_path / "x.png", exif=broken)

    pixels = decoded(tmp_path / "x.png", side=None)

    assert np.array_equal(pixels, np.rot90(COVER[:5], -1))


def test_a_picture_cut_short_is_refused_whatever_its_camera_said(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (64, 64), np.uint8)).save(
        tmp_path / "x.png", exif=exif
    )
    content = (tmp_path / "x.png").read_bytes()
    (tmp_path / "x.png").write_bytes(content[: len(content) // 2])

    with pytest.raises(DataError, match="cannot be read as an image"):
        decoded(tmp_path / "x.png", side=None)


def test_floating_point_pixels_have_no_range_and_are_refused(tmp_path: Path) -> None:
    Image.fromarray(np.linspace(0, 1, 64, dtype=np.float32).reshape(8, 8)).save(tmp_path / "x.tif")

    with pytest.raises(DataError, match=r"x\.tif .* floating-point .* 8 or 16 bits"):
        decoded(tmp_path / "x.tif", side=8)


@pytest.mark.parametrize("kind", ["LA", "RGBA", "P", "16", "1", "CMYK", "L", "RGB"])
def test_they_are_the_pixels_that_people_are_asked_about(kind: str, tmp_path: Path) -> None:
    if kind == "16":
        picture = Image.fromarray(DEEP)
    elif kind in {"LA", "RGBA", "P"}:
        picture = drawn_on_nothing(kind)
    else:
        picture = Image.fromarray(COVER).convert(kind)
    path = tmp_path / ("x.jpg" if kind == "CMYK" else "x.png")
    picture.save(path)

    shown = Image.open(io.BytesIO(picture_of_file(path.read_bytes(), path.name).data))

    difference = decoded(path, side=None).astype(int) - np.asarray(shown)
    assert np.abs(difference).max() <= (1 if kind == "16" else 0)  # of 16 bits they round otherwise
