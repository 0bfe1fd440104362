"""Two cameras: one set of photographs as two domains that differ in resolution, contrast and colour.

The paper's task of photographs (CIFAR-10 to STL-10) needs 3 GB of downloads. This one is made of the part of
CIFAR-10 at hand, and is the project's own: no paper prints a number for it.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

RESOLUTION = 0.5  # share of the pixels in a row that the second camera sees
CONTRAST = 0.6
TINT = (1.15, 0.95, 0.7)  # factors of red, green and blue: a warm light


def second_camera(images: Tensor) -> Tensor:
    """The same photographs by the second camera: blurred by half the resolution, flat, in a warm light.

    Args:
        images: uint8 (N, H, W, 3).

    Returns:
        uint8 (N, H, W, 3).
    """
    size = images.shape[1:3]
    small = [max(1, round(side * RESOLUTION)) for side in size]
    tint = torch.tensor(TINT)[:, None, None]
    done = []
    for part in torch.split(images, 512):
        pixels = part.movedim(3, 1).float()  # (B, 3, H, W)
        pixels = F.interpolate(pixels, size=small, mode="bilinear", antialias=True)
        pixels = F.interpolate(pixels, size=size, mode="bilinear")
        mean = pixels.mean(dim=(1, 2, 3), keepdim=True)  # (B, 1, 1, 1)
        pixels = (mean + CONTRAST * (pixels - mean)) * tint
        done.append(pixels.round().clamp(0, 255).to(torch.uint8).movedim(1, 3))
    return torch.cat(done).contiguous()


def two_cameras(arrays: dict[str, Tensor], *, second: bool) -> dict[str, Tensor]:
    """One of the two domains: every other image, so that no photograph is in both; the test images by it.

    Args:
        arrays: x_train, y_train, x_test and y_test of the photographs.
        second: which camera.
    """
    own = {name: arrays[name][int(second) :: 2] for name in ("x_train", "y_train")}
    own |= {name: arrays[name] for name in ("x_test", "y_test")}
    if not second:
        return own
    return own | {name: second_camera(own[name]) for name in ("x_train", "x_test")}
