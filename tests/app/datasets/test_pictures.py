"""What becomes of image files: our own encoding of their pixels, and nothing else."""

import io
from typing import Any

import numpy as np
import pytest
from PIL import Image

from app.datasets.intake.limits import LOSSLESS_PIXELS, MAX_STORED_SIDE
from app.datasets.intake.pictures import Picture, picture_of_file, picture_of_pixels
from tests.app.datasets.files import animation, images, picture

ORIENTATION = 0x0112


def opened(stored: Picture) -> Image.Image:
    """The stored picture, decoded."""
    return Image.open(io.BytesIO(stored.data))


def saved(image: Image.Image, format_: str, **options: object) -> bytes:
    """An image as a file."""
    out = io.BytesIO()
    image.save(out, format_, **options)
    return out.getvalue()


@pytest.mark.parametrize("shape", [(5, 9), (5, 9, 3)])
def test_pixels_of_arrays_are_kept_exactly(shape: tuple[int, ...]) -> None:
    pixels = images(1, *shape)[0]

    stored = picture_of_pixels(pixels)

    np.testing.assert_array_equal(np.asarray(opened(stored)), pixels)
    assert (stored.media_type, stored.width, stored.height) == ("image/png", 9, 5)
    assert stored.channels == (3 if len(shape) == 3 else 1)


@pytest.mark.parametrize(("format_", "options"), [("PNG", {}), ("BMP", {}), ("WEBP", {"lossless": True})])
def test_lossless_files_keep_their_pixels(format_: str, options: dict[str, Any]) -> None:
    data = picture(format_, **options)

    stored = picture_of_file(data, "a")

    np.testing.assert_array_equal(np.asarray(opened(stored)), np.asarray(Image.open(io.BytesIO(data))))
    assert stored.data != data or format_ == "PNG"


def test_a_camera_s_orientation_is_applied() -> None:
    exif = Image.Exif()
    exif[ORIENTATION] = 6  # the top of the scene is at the right edge of the file
    pixels = np.zeros((2, 3, 3), np.uint8)
    pixels[:, 2] = 255

    stored = picture_of_file(saved(Image.fromarray(pixels), "PNG", exif=exif), "a")

    assert (stored.width, stored.height) == (2, 3)
    assert np.asarray(opened(stored))[2].min() == 255
    assert np.asarray(opened(stored))[:2].max() == 0


def test_a_palette_s_orientation_is_applied() -> None:
    exif = Image.Exif()
    exif[ORIENTATION] = 6

    stored = picture_of_file(saved(Image.new("P", (3, 2)), "PNG", exif=exif), "a")

    assert (stored.width, stored.height) == (2, 3)


def test_nothing_but_pixels_is_kept() -> None:
    exif = Image.Exif()
    exif[0x010E] = "taken at home"
    data = saved(Image.new("RGB", (4, 4)), "PNG", exif=exif, icc_profile=b"a profile" * 20)

    stored = opened(picture_of_file(data, "a"))

    assert not stored.getexif()
    assert "icc_profile" not in stored.info
    assert b"taken at home" in data


def test_sixteen_bits_become_eight() -> None:
    deep = np.array([[0, 128, 257, 32896, 65535]], np.uint16)

    stored = picture_of_file(saved(Image.fromarray(deep), "PNG"), "a")

    np.testing.assert_array_equal(np.asarray(opened(stored)), [[0, 0, 1, 128, 255]])


def test_sixteen_bits_become_the_nearest_of_eight() -> None:
    deep = np.arange(2**16, dtype=np.uint16).reshape(256, 256)

    stored = picture_of_file(saved(Image.fromarray(deep), "PNG"), "a")

    assert np.abs(np.asarray(opened(stored)) - deep / 257).max() < 0.503


def test_print_colours_become_rgb() -> None:
    data = saved(Image.new("CMYK", (8, 8), (255, 0, 0, 0)), "JPEG", quality=95)

    stored = picture_of_file(data, "a")

    red, green, blue = np.asarray(opened(stored))[4, 4].astype(int)
    assert stored.channels == 3
    assert red < 30
    assert min(green, blue) > 220


@pytest.mark.parametrize(
    ("mode", "colour", "channels"), [("RGBA", (0, 0, 0, 0), 3), ("LA", (0, 0), 1), ("P", 0, 3)]
)
def test_transparent_parts_become_white(mode: str, colour: object, channels: int) -> None:
    options = {"transparency": 0} if mode == "P" else {}

    stored = picture_of_file(saved(Image.new(mode, (3, 2), colour), "PNG", **options), "a")  # type: ignore[arg-type]

    assert np.asarray(opened(stored)).min() == 255
    assert stored.channels == channels


def test_black_and_white_becomes_grey() -> None:
    bits = Image.new("1", (4, 4), 1)

    stored = picture_of_file(saved(bits, "PNG"), "a")

    assert (stored.channels, np.asarray(opened(stored)).min()) == (1, 255)


def test_large_pictures_are_kept_as_jpeg_and_very_large_ones_made_smaller() -> None:
    side = int(LOSSLESS_PIXELS**0.5)

    at_limit = picture_of_file(picture(size=(side, side)), "a")
    above = picture_of_file(picture(size=(side + 1, side)), "a")
    huge = picture_of_file(picture(size=(2 * MAX_STORED_SIDE, MAX_STORED_SIDE)), "a")

    assert (at_limit.media_type, above.media_type) == ("image/png", "image/jpeg")
    assert (huge.width, huge.height) == (MAX_STORED_SIDE, MAX_STORED_SIDE // 2)


def test_of_a_phone_s_many_pictures_the_first_counts() -> None:
    first, second = Image.new("RGB", (8, 8), "red"), Image.new("RGB", (8, 8), "blue")
    data = saved(first, "MPO", save_all=True, append_images=[second])

    red, _, blue = np.asarray(opened(picture_of_file(data, "a")))[4, 4].astype(int)

    assert red > 220
    assert blue < 30


@pytest.mark.parametrize("format_", ["GIF", "PNG", "WEBP"])
def test_of_an_animation_the_first_picture_counts(format_: str) -> None:
    red, _, blue = np.asarray(opened(picture_of_file(animation(format_), "a")))[2, 2].astype(int)

    assert red > 220
    assert blue < 30


def test_a_script_behind_a_picture_is_gone() -> None:
    stored = picture_of_file(picture("GIF") + b"<script>alert(1)</script>", "a")

    assert b"script" not in stored.data
    assert stored.data.startswith(b"\x89PNG")
