"""A feature extractor of which only the last layers learn, behind a backbone that stays as it is."""

from typing import TYPE_CHECKING, Self

from torch import Tensor, nn

from clarinet.networks.layers import HalfDropout

if TYPE_CHECKING:
    from clarinet.networks.backbones import Backbone
    from clarinet.networks.own import OwnBackbone

IMAGE_DIMENSIONS = 4  # of a batch (B, C, S, S)


class Bottleneck(nn.Module):
    """DTN's last layers behind a frozen backbone: (B, C, S, S), or its features (B, F), to (B, features).

    They are linear to `features`, batch normalisation, ReLU, dropout 0.5. The backbone predicts as its
    trained weights made it, in training as well.

    Args:
        backbone: gives F features.
        features: of the layer that learns.
    """

    def __init__(self, backbone: "Backbone | OwnBackbone", features: int) -> None:
        super().__init__()
        self.backbone = backbone
        self.features = features
        self.learning = nn.Sequential(
            nn.Linear(backbone.features, features), nn.BatchNorm1d(features), nn.ReLU(), HalfDropout()
        )

    def forward(self, x: Tensor) -> Tensor:
        """Features (B, features) of normalised images (B, C, S, S), or of what is kept of them (B, F)."""
        kept = self.backbone(x) if x.ndim == IMAGE_DIMENSIONS else x
        out: Tensor = self.learning(kept)
        return out

    def train(self, mode: bool = True) -> Self:
        """Training mode for the layers that learn alone."""
        super().train(mode)
        self.backbone.eval()
        return self

    def freeze(self) -> None:
        """Let the backbone's weights ask for no gradients."""
        self.backbone.requires_grad_(False).eval()
