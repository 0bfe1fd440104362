"""Hostile and broken npz files, each with the sentence it must be refused with."""

import zipfile

import numpy as np

from tests.app.datasets.files import images, npy, npy_header, npz_of
from tests.app.datasets.refused import CUT, NAME, Hostile

HEADERLESS = '"x_train.npy" has no header of a numpy array.'


def arrays(why: str, **members: np.ndarray | bytes) -> Hostile:
    """An npz with these arrays."""
    return Hostile(lambda: npz_of(**members), why)


def _dict(shape: str, descr: str = "'|u1'", fortran: str = "False") -> str:
    return f"{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}"


X = images(3, 4, 5)
ARRAYS = {
    "no-images": arrays(
        f'"{NAME}" has neither an array x_train nor an array x_test; it has "y_train": name them so where '
        "they are saved.",
        y_train=np.zeros(3, int),
    ),
    "none": arrays(f'"{NAME}" holds no images.', x_train=images(0, 4, 5)),
    "objects": arrays(
        '"x_train.npy" holds Python objects; only numbers are taken.', x_train=np.array([{}, 1])
    ),
    "label-objects": arrays(
        '"y_train.npy" holds Python objects; only numbers are taken.', x_train=X, y_train=np.array([{}, 1, 2])
    ),
    "floats": arrays(
        '"x_train.npy" holds float32 values; images must be uint8, 0 to 255.', x_train=X.astype(np.float32)
    ),
    "fields": arrays(
        "\"x_train.npy\" holds [('a', 'u1')] values; images must be uint8, 0 to 255.",
        x_train=np.zeros(3, [("a", "u1")]),
    ),
    "fortran": arrays(
        '"x_train.npy" is stored in Fortran order; save numpy.ascontiguousarray of it.',
        x_train=np.asfortranarray(X),
    ),
    "four-colours": arrays(
        '"x_train.npy" has the shape (3, 4, 5, 4); images must be (N, H, W) or (N, H, W, 3).',
        x_train=images(3, 4, 5, 4),
    ),
    "flat": arrays(
        '"x_train.npy" has the shape (3, 20); images must be (N, H, W) or (N, H, W, 3).',
        x_train=images(3, 20),
    ),
    "no-width": arrays(
        '"x_train.npy" has images of 4 x 0 pixels; 1 to 8192 a side are taken.', x_train=images(3, 4, 0)
    ),
    "wide": arrays(
        '"x_train.npy" has images of 1 x 8193 pixels; 1 to 8192 a side are taken.', x_train=images(1, 1, 8193)
    ),
    "labels-fewer": arrays(
        '"y_train.npy" has the shape (2,), but there are 3 images in x_train; expected (3,).',
        x_train=X,
        y_train=np.zeros(2, int),
    ),
    "labels-of-nothing": arrays(
        '"y_test.npy" has the shape (2,), but there are 0 images in x_test; expected (0,).',
        x_train=X,
        y_test=np.zeros(2, int),
    ),
    "labels-square": arrays(
        '"y_train.npy" has the shape (3, 1), but there are 3 images in x_train; expected (3,).',
        x_train=X,
        y_train=np.zeros((3, 1), int),
    ),
    "labels-float": arrays(
        '"y_train.npy" holds float64 values; labels must be whole numbers.', x_train=X, y_train=np.zeros(3)
    ),
    "labels-negative": arrays(
        '"y_train.npy" has labels outside 0 to 999 (-1 for unknown).', x_train=X, y_train=np.array([0, 1, -2])
    ),
    "labels-large": arrays(
        '"y_train.npy" has labels outside 0 to 999 (-1 for unknown).',
        x_train=X,
        y_train=np.array([0, 1, 2**64 - 1], np.uint64),
    ),
    "huge": arrays(
        '"x_train.npy" claims the shape (32768, 1024, 1024) but holds another number of bytes.',
        x_train=npy_header(_dict("(32768, 1024, 1024)")),
    ),
    "huge-overflow": arrays(
        '"x_train.npy" claims the shape (4294967296, 4294967296, 1) but holds another number of bytes.',
        x_train=npy_header(_dict("(4294967296, 4294967296, 1)")),
    ),
    "negative": arrays(
        '"x_train.npy" claims the shape (-1, 4, 5), which no array has.',
        x_train=npy_header(_dict("(-1, 4, 5)")),
    ),
    "fewer-bytes": arrays(
        '"x_train.npy" claims the shape (3, 4, 5) but holds another number of bytes.',
        x_train=npy_header(_dict("(3, 4, 5)"), bytes(59)),
    ),
    "more-bytes": arrays(
        '"x_train.npy" claims the shape (3, 4, 5) but holds another number of bytes.',
        x_train=npy_header(_dict("(3, 4, 5)"), bytes(61)),
    ),
    "no-header": arrays(HEADERLESS, x_train=b"hello"),
    "empty-member": arrays(HEADERLESS, x_train=b""),
    "code-in-header": arrays(HEADERLESS, x_train=npy_header("__import__('os').system('true')")),
    "deep-header": arrays(HEADERLESS, x_train=npy_header("(" * 3000 + ")" * 3000)),
    "long-header": arrays(HEADERLESS, x_train=npy_header(_dict("(3, 4, 5)") + " " * 9000, bytes(60))),
    "endless-header": arrays(
        HEADERLESS, x_train=npy_header(_dict("(3, 4, 5)"), bytes(60), version=2, length=0xFFFFFFF0)
    ),
    "unknown-version": arrays(HEADERLESS, x_train=npy(X).replace(b"NUMPY\x01", b"NUMPY\x09", 1)),
    "lzma-damaged": Hostile(
        lambda: _flip(npz_of(zipfile.ZIP_LZMA, x_train=images(30, 28, 28))), f'"x_train.npy" {CUT}'
    ),
    "deflate-damaged": Hostile(lambda: _flip(npz_of(x_train=images(30, 28, 28))), f'"x_train.npy" {CUT}'),
}


def _flip(data: bytes) -> bytes:
    """Damage a large zip in its middle."""
    middle = len(data) // 2
    return data[:middle] + bytes(255 - byte for byte in data[middle : middle + 40]) + data[middle + 40 :]
