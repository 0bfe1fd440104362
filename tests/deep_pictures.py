"""Files of pictures with 16 bits a channel, which Pillow cannot write."""

import struct
import zlib

import numpy as np

GREY_16, RGB_16, GREY_AND_ALPHA_16, RGBA_16 = 0, 2, 4, 6  # types of a PNG
SHORT, LONG = 3, 4  # types of a TIFF's fields


def deep_png(values: np.ndarray, kind: int, *, clear: tuple[int, ...] = ()) -> bytes:
    """A PNG of uint16 (H, W, C).

    Args:
        values: of its pixels.
        kind: of the four above.
        clear: the colour that stands for nothing, if one does.
    """
    height, width = values.shape[:2]
    # Each row after the first holds what it differs from the one above it (filter 2), byte by byte.
    rows = values.astype(">u2").reshape(height, -1).view(np.uint8)
    differences = np.concatenate([rows[:1], rows[1:] - rows[:-1]])
    data = b"".join(bytes([2 if row else 0]) + one.tobytes() for row, one in enumerate(differences))
    head = struct.pack(">IIBBBBB", width, height, 16, kind, 0, 0, 0)
    chunks = [(b"IHDR", head), (b"IDAT", zlib.compress(data)), (b"IEND", b"")]
    if clear:
        chunks.insert(1, (b"tRNS", struct.pack(f">{len(clear)}H", *clear)))
    packed = (
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        for name, body in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(packed)


def deep_tiff(
    values: np.ndarray,
    *,
    order: str = "<",
    photometric: int = 2,
    further: int | None = None,
    planes: bool = False,
) -> bytes:
    """A TIFF of uint16 (H, W, C), not compressed.

    Args:
        values: of its pixels.
        order: of the bytes, as struct writes it.
        photometric: 0 grey with white as zero, 1 grey, 2 RGB, 3 palette, 5 CMYK.
        further: what the channel behind the colours is: 1 opacity, multiplied into them, 2 opacity.
        planes: each channel for itself.
    """
    height, width, channels = values.shape
    typed = values.astype(f"{order}u2")
    strips = [typed[..., place].tobytes() for place in range(channels)] if planes else [typed.tobytes()]
    fields: list[tuple[int, int, list[int]]] = [
        (256, LONG, [width]),
        (257, LONG, [height]),
        (258, SHORT, [16] * channels),
        (259, SHORT, [1]),
        (262, SHORT, [photometric]),
        (273, LONG, [0] * len(strips)),
        (277, SHORT, [channels]),
        (278, LONG, [height]),
        (279, LONG, [len(strip) for strip in strips]),
        (284, SHORT, [2 if planes else 1]),
        *([(338, SHORT, [further])] if further is not None else []),
    ]
    behind = 8 + 2 + 12 * len(fields) + 4
    longer = {tag: more for tag, kind, more in fields if len(more) * (2 if kind == SHORT else 4) > 4}
    sizes = {tag: len(more) * 4 for tag, more in longer.items()}
    start = behind + sum(sizes.values())
    starts = [start + sum(map(len, strips[:place])) for place in range(len(strips))]
    directory, beyond = struct.pack(f"{order}H", len(fields)), b""
    for tag, kind, numbers in fields:
        counted = starts if tag == 273 else numbers
        packed = struct.pack(f"{order}{len(counted)}{'H' if kind == SHORT else 'I'}", *counted)
        if tag in longer:
            place, beyond = behind + len(beyond), beyond + packed.ljust(sizes[tag], b"\0")
            packed = struct.pack(f"{order}I", place)
        directory += struct.pack(f"{order}HHI", tag, kind, len(counted)) + packed.ljust(4, b"\0")
    head = (b"II" if order == "<" else b"MM") + struct.pack(f"{order}HI", 42, 8)
    return head + directory + bytes(4) + beyond + b"".join(strips)
