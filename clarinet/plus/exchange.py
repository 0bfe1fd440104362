"""Which of the groups found each class should have, by the labels of all images of a group."""

import torch
from torch import Tensor

from clarinet.plus.votes import FIRST_NOISE, Votes, penalty

LEAST_EXCHANGE = 1.0  # nats by which the labels must speak for two classes' exchange


def exchanged(classes: Tensor, votes: Votes) -> Tensor | None:
    """Which group each class should have: (K,) int64, None where each has its own.

    Two classes change places, the pair first that the labels of both groups' images speak for most, as long
    as they speak for any.

    Args:
        classes: (N, K) of the images by others' labels; a group is what one class has of them.
        votes: the labels of the images.
    """
    num_classes = classes.shape[1]
    against = classes.T @ (votes.complementary - votes.true)  # (K, K), group by class
    against = penalty(FIRST_NOISE, num_classes) * against.double()
    order = torch.arange(num_classes, device=classes.device)
    while True:
        now = against[order]
        own = now.diagonal()
        gain = own[:, None] + own - now - now.T  # (K, K) of an exchange
        if not float(gain.max()) > LEAST_EXCHANGE:  # nor where nothing can be compared
            return None if bool((order == torch.arange(num_classes, device=order.device)).all()) else order
        pair = torch.stack([gain.argmax() // num_classes, gain.argmax() % num_classes])
        order[pair] = order[pair.flip(0)]
