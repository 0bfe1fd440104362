"""Pictures of more than 8 bits a channel, brought to 8 by the range of their values.

Pillow keeps grey of 16 bits, but no colours: it decodes the higher byte of each channel, as the raw mode of
the file's tiles says in which order the bytes are. Under the other order it decodes the lower byte. So a
picture that is decoded under both gives all that its file holds.
"""

import sys
from collections.abc import Iterator, Mapping
from typing import cast

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFile

DEPTHS = (8, 12, 16)  # bits that values are stored in; of more, as many as there are
BAND_PIXELS = 2**20  # of a large picture that are worked on at once
GREY_AND_ALPHA, FOUR_BYTES = "LA;16B", "RGBA"  # raw modes of a PNG: Pillow's, and its bytes as they come
BITS_PER_SAMPLE, PHOTOMETRIC, PLANES = 258, 262, 284  # tags of a TIFF
APART = 2  # its channels are one after the other
WHITE_IS_ZERO = 0  # Pillow turns such pictures of 8 bits around, and no deeper ones
_OTHER_ORDER = {"16L": "16B", "16B": "16L", "16N": "16B" if sys.byteorder == "little" else "16L"}

Values = NDArray[np.generic]


def bands(size: tuple[int, int]) -> Iterator[tuple[int, int, int, int]]:
    """Boxes of whole rows that make up a picture, of about BAND_PIXELS each."""
    width, height = size
    rows = max(1, BAND_PIXELS // width)
    for top in range(0, height, rows):
        yield 0, top, width, min(top + rows, height)


def has_deep_colours(image: Image.Image) -> bool:
    """Whether a picture, of which only the head was read, has channels of 16 bits that Pillow would cut."""
    if image.mode.startswith("I") or not isinstance(image, ImageFile.ImageFile):
        return False
    return any(_raw_mode(tile).rpartition(";")[2] in _OTHER_ORDER for tile in image.tile)


def has_deep_planes(image: Image.Image) -> bool:
    """Whether a TIFF holds channels of 16 bits one after the other, whose bytes Pillow mixes up or cuts."""
    tags = getattr(image, "tag_v2", {})
    return max(tags.get(BITS_PER_SAMPLE, ()), default=0) > min(DEPTHS) and tags.get(PLANES, 1) == APART


def is_deep_grey(image: Image.Image) -> bool:
    """Whether `in_eight_bits` makes grey of it, perhaps with transparency."""
    return image.mode.startswith("I") or (
        has_deep_colours(image) and _raw_modes(cast("ImageFile.ImageFile", image)) == {GREY_AND_ALPHA}
    )


def in_eight_bits(image: Image.Image) -> tuple[Image.Image, int | None]:
    """A picture in 8 bits, and how many bits its values use; one that has no more than 8 itself, and None.

    The values use the fewest bits of DEPTHS that hold the largest of them, because a file of 16 bits may hold
    12, as X-rays and cameras have it. Transparency has a range of its own.

    Args:
        image: of which only the head was read; what was decoded before has no more bits than it has.

    Returns:
        Mode L or LA of grey, and of colours their mode, or RGBA where one colour stands for nothing.
    """
    if image.mode.startswith("I"):
        return _of_grey(image)
    if has_deep_colours(image):
        return _of_colours(cast("ImageFile.ImageFile", image))
    return image, None


def _of_grey(image: Image.Image) -> tuple[Image.Image, int]:
    image.load()
    # Pillow tells no extrema of some orders of bytes.
    bits = _bits(max(int(np.asarray(image.crop(box)).max()) for box in bands(image.size)))
    key = image.info.get("transparency")
    is_negative = getattr(image, "tag_v2", {}).get(PHOTOMETRIC, 1) == WHITE_IS_ZERO
    made = Image.new("L" if key is None else "LA", image.size)
    for box in bands(image.size):
        values = np.asarray(image.crop(box))
        grey = _scaled(values, bits)
        if is_negative:
            grey = 255 - grey
        planes = [grey] if key is None else [grey, _shown(values != key)]
        made.paste(_picture(made.mode, np.stack(planes, axis=2)), box)
    return made, bits


def _of_colours(image: ImageFile.ImageFile) -> tuple[Image.Image, int]:
    mode, high, low = _both_bytes(image)
    highest = [top for _, top in cast("tuple[tuple[int, int], ...]", high.getextrema())]
    colours = len(highest) - (mode in {"LA", "RGBA", "RGBa"})
    bits, *of_alpha = [_bits(max(some) << 8 | 255) for some in (highest[:colours], highest[colours:]) if some]
    key = image.info.get("transparency") if mode == "RGB" else None
    made = Image.new(mode if key is None else "RGBA", image.size)
    for box in bands(image.size):
        values = np.asarray(high.crop(box)).astype(np.uint16) << 8 | np.asarray(low.crop(box))  # (R, W, C)
        planes = [_scaled(values[..., :colours], bits)]
        planes += [_scaled(values[..., colours:], alpha) for alpha in of_alpha]
        if key is not None:
            planes.append(_shown((values != np.asarray(key, np.uint16)).any(axis=2))[..., None])
        made.paste(_picture(made.mode, np.concatenate(planes, axis=2)), box)
    return (made.convert("RGBA") if mode == "RGBa" else made), bits


def _both_bytes(image: ImageFile.ImageFile) -> tuple[str, Image.Image, Image.Image]:
    """The mode of a picture of 16 bits, and its higher and lower bytes, each as a picture of that mode."""
    modes = _raw_modes(image)
    if modes == {GREY_AND_ALPHA}:
        grey, low_grey, alpha, low_alpha = _decoded_as(image, {GREY_AND_ALPHA: FOUR_BYTES}).split()
        return "LA", Image.merge("LA", (grey, alpha)), Image.merge("LA", (low_grey, low_alpha))
    is_multiplied = any(mode.startswith("RGBa") for mode in modes)  # colours with their opacity
    plain = {mode: mode.replace("RGBa", "RGBA") for mode in modes}
    other = {mode: _in_other_order(name) for mode, name in plain.items()}
    mode = "RGBa" if is_multiplied else image.mode
    return mode, _decoded_as(image, plain), _decoded_as(image, other)


def _in_other_order(raw_mode: str) -> str:
    name, _, order = raw_mode.rpartition(";")
    return f"{name};{_OTHER_ORDER[order]}"


def _decoded_as(image: ImageFile.ImageFile, raw_modes: Mapping[str, str]) -> Image.Image:
    """The file of an image decoded anew, with other raw modes in the place of its own."""
    source = image.filename or image.fp
    assert source is not None  # nothing was decoded yet
    if not isinstance(source, str | bytes):
        source.seek(0)
    with Image.open(source, formats=[image.format or ""]) as again:
        assert isinstance(again, ImageFile.ImageFile)
        again.tile = [
            tile._replace(args=_with_raw_mode(tile, raw_modes[_raw_mode(tile)])) for tile in again.tile
        ]
        again.load()
    return again


def _raw_modes(image: ImageFile.ImageFile) -> set[str]:
    return {_raw_mode(tile) for tile in image.tile}


def _raw_mode(tile: "ImageFile._Tile") -> str:
    first = tile.args if isinstance(tile.args, str) else tile.args[0] if tile.args else ""
    return first if isinstance(first, str) else ""


def _with_raw_mode(tile: "ImageFile._Tile", raw_mode: str) -> "tuple[object, ...] | str":
    if isinstance(tile.args, str) or tile.args is None:
        return raw_mode
    return (raw_mode, *tile.args[1:])


def _bits(highest: int) -> int:
    used = highest.bit_length()
    return next((depth for depth in DEPTHS if used <= depth), used)


def _scaled(deep: Values, bits: int) -> NDArray[np.uint8]:
    """Of values from 0 to 2**bits - 1: v * 255 / (2**bits - 1) to the nearest, by whole numbers."""
    if bits > max(DEPTHS):
        deep, bits = deep >> (bits - max(DEPTHS)), max(DEPTHS)  # type: ignore[operator]  # they are integers
    highest = 2**bits - 1
    values = deep.clip(0, highest).astype(np.uint32)
    values *= 255
    values += highest // 2
    values //= highest
    return values.astype(np.uint8)


def _shown(is_there: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Opacity of what is there, and of what is not."""
    return np.where(is_there, 255, 0).astype(np.uint8)


def _picture(mode: str, planes: NDArray[np.uint8]) -> Image.Image:
    """Of (H, W, C)."""
    height, width, _ = planes.shape
    return Image.frombytes(mode, (width, height), np.ascontiguousarray(planes).tobytes())
