"""Odd pictures, to the application's import and to the library: what people see, in eight bits, in sRGB."""

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageCms

from app.datasets.intake.pictures import picture_of_file
from clarinet.files.pictures import Change, decoded
from clarinet.files.refusal import Refused
from tests.app.datasets.files import heic, profile

RED = Image.new("RGB", (40, 20), (200, 30, 30))


def saved(image: Image.Image, format_: str, **options: object) -> bytes:
    """An image as a file."""
    out = io.BytesIO()
    image.save(out, format_, **options)
    return out.getvalue()


def deep(highest: int) -> Image.Image:
    """Grey in 16 bits, from 0 to a highest value."""
    return Image.fromarray(np.linspace(0, highest, 800).round().astype(np.uint16).reshape(20, 40))


def both(data: bytes, tmp_path: Path) -> tuple[np.ndarray, set[Change]]:
    """What is stored, and what became of it; the library sees the same pixels, where no JPEG was made."""
    changes: set[Change] = set()
    stored = np.asarray(Image.open(io.BytesIO(picture_of_file(data, "x", note=changes.add).data)))
    (tmp_path / "x").write_bytes(data)
    np.testing.assert_array_equal(stored, decoded(tmp_path / "x", side=None))
    return stored, changes


@pytest.mark.parametrize("format_", ["PNG", "TIFF"])
@pytest.mark.parametrize(
    ("highest", "change", "brightest"),
    [
        (199, Change.FROM_8_BITS, 199),
        (255, Change.FROM_8_BITS, 255),
        (3995, Change.FROM_12_BITS, 249),
        (4095, Change.FROM_12_BITS, 255),
        (65535, Change.FROM_16_BITS, 255),
    ],
)
def test_deep_grey_is_scaled_by_its_range(
    format_: str, highest: int, change: Change, brightest: int, tmp_path: Path
) -> None:
    pixels, changes = both(saved(deep(highest), format_), tmp_path)

    assert pixels.dtype == np.uint8
    assert (pixels.min(), pixels.max()) == (0, brightest)
    assert changes == {change}


def test_each_value_becomes_the_nearest(tmp_path: Path) -> None:
    for bits in (12, 16):
        values = np.arange(2**bits, dtype=np.uint16).reshape(64, -1)
        pixels, _ = both(saved(Image.fromarray(values), "PNG"), tmp_path)
        np.testing.assert_array_equal(pixels, np.floor(values.astype(np.int64) * 255 / (2**bits - 1) + 0.5))


def test_formats_of_telephones_and_scanners(tmp_path: Path) -> None:
    for data in (heic(RED), saved(RED, "AVIF"), saved(RED, "TIFF"), saved(RED.convert("CMYK"), "TIFF")):
        pixels, changes = both(data, tmp_path)
        assert pixels.shape == (20, 40, 3)
        assert np.abs(pixels[10, 20].astype(int) - (200, 30, 30)).max() <= 4
        assert changes == set()


def test_colours_of_a_profile_are_those_that_people_see(tmp_path: Path) -> None:
    icc = profile(swapped=True)
    pixels, changes = both(saved(RED, "PNG", icc_profile=icc), tmp_path)
    own = ImageCms.ImageCmsProfile(io.BytesIO(icc))
    wanted = ImageCms.profileToProfile(RED, own, ImageCms.createProfile("sRGB"))

    assert wanted is not None
    assert tuple(pixels[0, 0]) == wanted.getpixel((0, 0)) != (200, 30, 30)
    assert changes == {Change.IN_SRGB}
    assert both(saved(RED, "PNG", icc_profile=profile(swapped=False)), tmp_path)[1] == set()


def test_what_is_turned_or_transparent_is_said(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x112] = 6
    clear = Image.new("RGBA", (4, 4), (255, 0, 0, 0))

    turned = both(saved(RED, "PNG", exif=exif), tmp_path)
    white = both(saved(clear, "PNG"), tmp_path)

    assert (turned[0].shape, turned[1]) == ((40, 20, 3), {Change.TURNED})
    assert (white[0].min(), white[1]) == (255, {Change.WHITENED})


def test_floating_point_and_raw_data_have_no_known_range(tmp_path: Path) -> None:
    floats = saved(Image.fromarray(np.ones((4, 4), np.float32)), "TIFF")
    (tmp_path / "photo.NEF").write_bytes(saved(RED, "TIFF"))

    with pytest.raises(Refused, match="floating-point pixels, of no known range"):
        both(floats, tmp_path)
    with pytest.raises(Refused, match="raw data"):
        decoded(tmp_path / "photo.NEF", side=None)


def test_of_several_pictures_in_a_file_the_first_is_taken_and_that_is_said(tmp_path: Path) -> None:
    for format_ in ("GIF", "WEBP", "TIFF", "PNG"):
        options = {"lossless": True} if format_ == "WEBP" else {}
        data = saved(
            RED, format_, save_all=True, append_images=[Image.new("RGB", RED.size, "blue")], **options
        )
        pixels, changes = both(data, tmp_path)
        assert tuple(pixels[0, 0]) == (200, 30, 30)
        assert changes == {Change.FIRST_ALONE}
