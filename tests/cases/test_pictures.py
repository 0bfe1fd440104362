"""Odd pictures, to the application's import and to the library: what people see, in eight bits, in sRGB."""

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageCms

from app.datasets.intake.pictures import picture_of_file
from clarinet.files.pictures import Change, decoded, is_grey
from clarinet.files.refusal import Refused
from tests.app.datasets.files import heic, profile
from tests.deep_pictures import GREY_16, GREY_AND_ALPHA_16, RGB_16, RGBA_16, deep_png, deep_tiff

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
        np.testing.assert_array_equal(pixels, nearest(values, bits))


def nearest(values: np.ndarray, bits: int) -> np.ndarray:
    """What values of so many bits become in 8."""
    return np.asarray(np.floor(values.astype(np.int64) * 255 / (2**bits - 1) + 0.5))


def shades(highest: int) -> np.ndarray:
    """uint16 (13, 7, 3) in which the lower bytes matter, up to a highest value."""
    values = np.random.default_rng(0).integers(0, highest + 1, (13, 7, 3)).astype(np.uint16)
    values[0, 0] = highest
    return values


@pytest.mark.parametrize(
    ("highest", "bits", "change"),
    [
        (200, 8, Change.FROM_8_BITS),
        (3995, 12, Change.FROM_12_BITS),
        (4096, 16, Change.FROM_16_BITS),
        (65535, 16, Change.FROM_16_BITS),
    ],
)
def test_deep_colours_are_scaled_by_their_range_as_deep_greys_are(
    highest: int, bits: int, change: Change, tmp_path: Path
) -> None:
    colours = shades(highest)
    covered = np.concatenate([colours, np.full((13, 7, 1), 65535, np.uint16)], axis=2)
    files = [
        deep_png(colours, RGB_16),
        deep_png(covered, RGBA_16),
        deep_tiff(colours),
        deep_tiff(colours, order=">"),
        deep_tiff(covered, further=0),
        deep_tiff(covered, further=1),
        deep_tiff(covered, further=2, order=">"),
    ]

    for data in files:
        pixels, changes = both(data, tmp_path)
        np.testing.assert_array_equal(pixels, nearest(colours, bits))
        assert changes == {change}


def test_deep_grey_with_transparency_stays_grey(tmp_path: Path) -> None:
    grey = shades(4095)[..., :1]
    opacity = np.full_like(grey, 65535)
    opacity[0, 0] = 0

    pixels, changes = both(deep_png(np.concatenate([grey, opacity], axis=2), GREY_AND_ALPHA_16), tmp_path)

    seen = nearest(grey[..., 0], 12)
    seen[0, 0] = 255
    np.testing.assert_array_equal(pixels, seen)
    assert changes == {Change.FROM_12_BITS, Change.WHITENED}
    assert is_grey(tmp_path / "x")


def test_a_deep_colour_that_stands_for_nothing_is_that_colour_alone(tmp_path: Path) -> None:
    colours = np.full((2, 2, 3), 40000, np.uint16)
    colours[0, 0] += 1  # which differs in the lower byte alone

    whole = both(deep_png(colours, RGB_16, clear=(40001, 40001, 40001)), tmp_path)
    grey = both(deep_png(colours[..., :1], GREY_16, clear=(40001,)), tmp_path)

    assert whole[0][..., 0].tolist() == grey[0].tolist() == [[255, 156], [156, 156]]
    assert whole[1] == grey[1] == {Change.FROM_16_BITS, Change.WHITENED}


@pytest.mark.parametrize("order", ["<", ">"])
def test_deep_grey_of_a_tiff_has_the_shades_that_people_see(order: str, tmp_path: Path) -> None:
    grey = shades(65535)[..., :1]

    black, _ = both(deep_tiff(grey, order=order, photometric=1), tmp_path)

    np.testing.assert_array_equal(black, nearest(grey[..., 0], 16))
    if order == "<":  # the other order is refused, as what is not read
        white, _ = both(deep_tiff(grey, photometric=0), tmp_path)
        np.testing.assert_array_equal(white, 255 - black)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (deep_tiff(shades(65535), planes=True), "in a plane of its own, which is not read; save it with its"),
        (deep_tiff(shades(65535)[..., :1], photometric=3), "is a TIFF of a kind that is not read"),
        (deep_tiff(shades(65535)[..., :1], photometric=0, order=">"), "is a TIFF of a kind that is not read"),
        (deep_png(shades(65535), RGB_16)[:300], "cut short or damaged"),
    ],
    ids=["planes", "a palette", "white is zero", "cut short"],
)
def test_deep_pictures_that_are_not_read_are_refused(data: bytes, words: str, tmp_path: Path) -> None:
    with pytest.raises(Refused, match=words):
        picture_of_file(data, "x.tif")
    (tmp_path / "x.tif").write_bytes(data)
    with pytest.raises(Refused, match=words):
        decoded(tmp_path / "x.tif", side=None)


def test_a_deep_picture_is_made_smaller_without_losing_its_range() -> None:
    wide = np.zeros((4, 3000, 3), np.uint16)
    wide[:, 1000:] = 4095

    stored = np.asarray(Image.open(io.BytesIO(picture_of_file(deep_png(wide, RGB_16), "x").data)))

    assert stored.shape[1] == 2048
    assert (stored.min(), stored.max()) == (0, 255)


def test_formats_of_telephones_and_scanners(tmp_path: Path) -> None:
    printed = saved(RED.convert("CMYK"), "TIFF")
    for data in (heic(RED), saved(RED, "AVIF"), saved(RED, "TIFF"), printed):
        pixels, changes = both(data, tmp_path)
        assert pixels.shape == (20, 40, 3)
        assert np.abs(pixels[10, 20].astype(int) - (200, 30, 30)).max() <= 4
        assert changes == ({Change.FROM_CMYK} if data is printed else set())


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
