"""Pictures as bytes of files."""

import io

from PIL import Image


def grey_png(level: int, side: int = 8) -> bytes:
    """A grey picture of one level."""
    return encoded(Image.new("L", (side, side), level))


def encoded(image: Image.Image, kind: str = "PNG", **options: int) -> bytes:
    """An image as a file."""
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()
