"""What a network needs so that several processes can take one batch through it, each its part."""

from torch import Tensor, nn

from clarinet.distributed.group import Group
from clarinet.networks.layers import DomainBatchNorm, HalfDropout

# Those of torchvision and timm, which drop whole images' branches. By name, as either may be absent.
DROPPING_PATHS = ("StochasticDepth", "DropPath")


class PartNoise(nn.Module):
    """A layer that multiplies a batch by noise, for a part of the batch: drawn for the whole, and the same.

    Args:
        layer: which draws it; stands for every layer whose output is its input times noise.
        group: the processes that hold the other parts.
    """

    def __init__(self, layer: nn.Module, group: Group) -> None:
        super().__init__()
        self.layer = layer
        self._group = group

    def forward(self, x: Tensor) -> Tensor:
        """The input's shape and type."""
        if not self.training:
            out: Tensor = self.layer(x)
            return out
        # Noise of whole maps or images is drawn as such: so much as the input would take far more memory.
        shape = tuple(x.shape[1:])
        if isinstance(self.layer, nn.Dropout2d):
            shape = (*shape[:1], *[1] * (x.ndim - 2))
        elif not isinstance(self.layer, nn.Dropout | HalfDropout):
            shape = (1,) * (x.ndim - 1)
        return self._group.with_noise(x, self.layer, shape)


def spread_over(group: Group, network: nn.Module) -> None:
    """Let the layers of a network know that each batch in training is a part of one; alone change nothing."""
    if group.is_alone:
        return
    for name, child in list(network.named_children()):
        if isinstance(child, DomainBatchNorm):
            child.in_parts = True
        if isinstance(child, nn.Dropout | nn.Dropout2d | HalfDropout) or (
            type(child).__name__ in DROPPING_PATHS
        ):
            setattr(network, name, PartNoise(child, group))
        else:
            spread_over(group, child)
