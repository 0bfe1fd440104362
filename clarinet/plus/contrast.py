"""Features without labels: two views of one image belong together, views of other images do not."""

import torch
import torch.nn.functional as F
from torch import Tensor


def contrastive_loss(first: Tensor, second: Tensor, temperature: float) -> Tensor:
    """How badly the two views of an image find each other among all views of the batch.

    Args:
        first, second: (B, D) projected features of two views of the same images, row by row, B >= 2.
        temperature: by which cosines are divided, > 0.

    Returns:
        () cross-entropy in nats, log(2 B - 1) when nothing is told apart.

    Source: Chen et al., A Simple Framework for Contrastive Learning of Visual Representations, eq. (1).
    """
    views = F.normalize(torch.cat([first, second]).float(), dim=1)  # (2B, D)
    count = len(views)
    places = torch.arange(count, device=views.device)
    # A view is no partner of itself.
    alike = (views @ views.T / temperature).masked_fill(places[:, None] == places, -torch.inf)  # (2B, 2B)
    return F.cross_entropy(alike, places.roll(count // 2))
