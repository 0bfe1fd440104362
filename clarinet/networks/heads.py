"""The label predictor on features of a frozen backbone: a space common to both domains, then a linear map."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from clarinet.networks.layers import DomainInForce

DIRECTIONS = 256  # of the common space, at most
LEAST_SPREAD = 1e-3  # of the mean spread, for a feature that hardly varies in a domain


class CommonSpaceHead(nn.Linear):
    """Features (B, D) of the domain in force to logits (B, K).

    First roots of the features, which bring their long tails in. The domain's own mean is taken off and its
    spread divided out, so that what all images of a domain share goes. Then come unit length, P principal
    directions of both domains, unit length again, and a linear map.

    Args:
        features: D.
        num_classes: K.
        domain: in force, owned by the classifier.
    """

    def __init__(self, features: int, num_classes: int, domain: DomainInForce) -> None:
        directions = min(features, DIRECTIONS)
        super().__init__(directions, num_classes)
        self.domain = domain
        self.mean: Tensor
        self.spread: Tensor
        self.directions: Tensor
        self.register_buffer("mean", torch.zeros(2, features))
        self.register_buffer("spread", torch.ones(2, features))
        self.register_buffer("directions", torch.eye(features, directions))

    def forward(self, features: Tensor) -> Tensor:
        """Logits (B, K)."""
        return super().forward(self.placed(features))

    def placed(self, features: Tensor) -> Tensor:
        """(B, P) places of unit length in the common space."""
        return F.normalize(self._alike(features) @ self.directions, dim=1)

    def _alike(self, features: Tensor) -> Tensor:
        """(B, D) features as those of the other domain are."""
        row = self.domain.number
        return F.normalize((_roots(features.float()) - self.mean[row]) / self.spread[row], dim=1)

    @torch.no_grad()
    def fit_space(self, source: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Find the space in which all images of both domains lie; the linear map stays as it is.

        Args:
            source, target: (N, D) and (M, D) features of the domains' images.

        Returns:
            The places of both, (N, P) and (M, P).
        """
        before = self.domain.number
        alike = [self._standardised(number, features) for number, features in enumerate((source, target))]
        self.domain.number = before
        products = alike[0].T.double() @ alike[0].double() + alike[1].T.double() @ alike[1].double()
        # The last columns belong to the largest eigenvalues. An iteration from random starts would make
        # another model of the same images.
        directions = torch.linalg.eigh(products).eigenvectors.flip(1)
        self.directions.copy_(directions[:, : self.directions.shape[1]])
        first, second = (F.normalize(part @ self.directions, dim=1) for part in alike)
        return first, second

    def _standardised(self, number: int, features: Tensor) -> Tensor:
        """Take mean and spread of a domain's features, and give these as those of the other domain are."""
        roots = _roots(features.float())
        spread = roots.std(0, correction=0)
        self.mean[number] = roots.mean(0)
        self.spread[number] = (spread + LEAST_SPREAD * spread.mean()).clamp(min=torch.finfo().tiny)
        self.domain.number = number
        return self._alike(features)


def _roots(features: Tensor) -> Tensor:
    """Square roots that keep the sign; their slope at 0 is 0, not infinite."""
    return features.sign() * features.abs().clamp(min=torch.finfo().tiny).sqrt()
