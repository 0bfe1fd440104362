"""Drawn images of the kinds that the recipe follows from."""

import numpy as np
from PIL import Image, ImageDraw

from tests.clarinet.looks import Stack

COUNT = 24


def signs(side: int = 28, *, width: float = 0.1, ground: int = 0, ink: int = 255) -> Stack:
    """A Z on a plain ground, a little different in each image."""
    found = []
    for seed in range(COUNT):
        draws = np.random.default_rng(seed)
        image = Image.new("L", (side * 4, side * 4), ground)
        corners = np.array([(0.25, 0.2), (0.75, 0.2), (0.25, 0.8), (0.75, 0.8)])
        points = [tuple(point) for point in (corners + draws.normal(0, 0.04, (4, 2))) * side * 4]
        ImageDraw.Draw(image).line(points, fill=ink, width=round(width * side * 4))
        found.append(np.asarray(image.resize((side, side), Image.Resampling.BILINEAR)))
    return found


def scenes(side: int, *, colour: bool = True) -> Stack:
    """Smooth noise of all scales, as natural images have it: amplitudes that fall with the frequency."""
    found = []
    for seed in range(COUNT):
        draws = np.random.default_rng(seed)
        across = np.fft.fftfreq(side)
        frequency = np.hypot(across[:, None], across[None, :])
        frequency[0, 0] = 1
        planes = []
        for _ in range(3 if colour else 1):
            noise = np.fft.ifft2(np.fft.fft2(draws.normal(size=(side, side))) / frequency).real
            planes.append(np.clip(128 + 50 * noise / noise.std(), 0, 255))
        found.append(np.stack(planes, axis=2).squeeze().astype(np.uint8))
    return found


def drawings(side: int) -> Stack:
    """Many fine lines on white."""
    found = []
    for seed in range(COUNT):
        draws = np.random.default_rng(seed)
        image = Image.new("L", (side, side), 255)
        for _ in range(6):
            ImageDraw.Draw(image).line([tuple(draws.uniform(0, side, 2)) for _ in range(3)], fill=0, width=1)
        found.append(np.asarray(image))
    return found
