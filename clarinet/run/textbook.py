"""The losses of the paper's Algorithm 1, with nothing done for speed: the reference of `bench step`.

Like `training`, it takes one summed step of all networks where the paper updates D first.

Kept to be measured against and to check the fast step; nothing trains with it. It loops over the classes and
looks at the sign of each risk. It goes backwards once for the labels and once for the domains. It fetches its
images one by one, in float32 and torch's usual memory layout.
"""

from collections.abc import Iterator
from typing import TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from clarinet.losses.adaptation.adversary import reversed_gradient

Batch = TypeVar("Batch")


class Images(Dataset[tuple[Tensor, Tensor]]):
    """uint8 images (N, 1, S, S), made floats in -1..1 when they are fetched, each with its label (N,)."""

    def __init__(self, images: Tensor, labels: Tensor) -> None:
        self.images = images
        self.labels = labels

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self.images[index].float().div(255).sub(0.5).div(0.5), self.labels[index]


def endless(loader: "DataLoader[Batch]") -> Iterator[Batch]:
    """One pass after the other, as the smaller domain needs."""
    while True:
        yield from loader


class TextbookClassifier(nn.Module):
    """The LeNet of CDAN and a label predictor: (B, 1, 28, 28) to features (B, 500) and logits (B, K)."""

    def __init__(self, num_classes: int) -> None:
        super().__init__()
        self.extractor = nn.Sequential(
            nn.Conv2d(1, 20, 5),
            nn.MaxPool2d(2),
            nn.ReLU(),
            nn.Conv2d(20, 50, 5),
            nn.Dropout2d(0.5),
            nn.MaxPool2d(2),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(800, 500),
            nn.ReLU(),
            nn.Dropout(0.5),
        )
        self.predictor = nn.Linear(500, num_classes)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Features (B, 500) and logits (B, K) of images (B, 1, 28, 28)."""
        features = self.extractor(images)  # (B, 500)
        return features, self.predictor(features)


def textbook_discriminator(num_classes: int) -> nn.Sequential:
    """500-500-1 with ReLU and dropout, on 500 features of each class."""
    return nn.Sequential(
        nn.Linear(500 * num_classes, 500),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Linear(500, 500),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Linear(500, 1),
    )


def class_risks(logits: Tensor, labels: Tensor, proportions: Tensor) -> list[Tensor]:
    """L_k of eq. E2 for each class k, a group of equal complementary labels at a time.

    Args:
        logits: (N, K).
        labels: (N,) int64 complementary labels.
        proportions: (K,) pi_j.

    Returns:
        K scalars.
    """
    num_classes = logits.shape[1]
    losses = -F.log_softmax(logits, dim=1)  # (N, K)
    risks = [logits.new_zeros(()) for _ in range(num_classes)]
    for j in range(num_classes):
        group = labels == j
        if not group.any().item():
            continue
        share = proportions[j] * losses[group].mean(0)  # (K,)
        risks = [risk + share[k] for k, risk in enumerate(risks)]
        risks[j] = risks[j] - (num_classes - 1) * share[j]
    return risks


def label_loss(risks: list[Tensor]) -> Tensor:
    """Lines 7 to 13 of Algorithm 1: the sum of K risks, or what ascends on the negative ones; () in nats."""
    negative = [risk for risk in risks if risk.item() < 0]
    if negative:
        return -torch.stack(negative).sum()
    return torch.stack(risks).sum()


def domain_loss(
    discriminator: nn.Module, features: Tensor, logits: Tensor, label: float, *, sharpening: float
) -> Tensor:
    """Weighted mean binary cross-entropy of D on one domain, a function of the logits also by T(f) and w.

    Args:
        discriminator: (N, K * D) to (N, 1) logits.
        features: (N, D).
        logits: (N, K).
        label: 1 for the source, 0 for the target.
        sharpening: l of T.
    """
    # Powers and a sigmoid before the cross-entropy, as the formulas read; saturated logits want log_softmax
    # and BCE with logits, which `adversarial` has.
    powers = logits.softmax(1) ** (1 / sharpening)
    sharp = powers / powers.sum(1, keepdim=True)  # (N, K)
    weights = 1 + torch.exp((sharp * sharp.log()).sum(1))  # (N,)
    joint = torch.bmm(sharp.unsqueeze(2), features.unsqueeze(1)).view(len(features), -1)  # (N, K * D)
    scores = torch.sigmoid(discriminator(joint)).squeeze(1)  # (N,)
    losses = F.binary_cross_entropy(scores, torch.full_like(scores, label), reduction="none")
    return (weights * losses).sum() / weights.sum()


class TextbookStep:
    """Algorithm 1 in the CC setting, for epochs t > T_s.

    Args:
        classifier: images to features (N, D) and logits (N, K).
        discriminator: (N, K * D) to (N, 1) logits.
        optimizer: of the parameters of both.
        proportions: (K,) pi_j of the data set.
        sharpening: l of T.
        reversal: strength of the reversal.
    """

    def __init__(
        self,
        classifier: nn.Module,
        discriminator: nn.Module,
        optimizer: torch.optim.Optimizer,
        *,
        proportions: Tensor,
        sharpening: float,
        reversal: float,
    ) -> None:
        self.classifier = classifier
        self.discriminator = discriminator
        self.optimizer = optimizer
        self.proportions = proportions
        self.sharpening = sharpening
        self.reversal = reversal

    def gradients(self, source: Tensor, labels: Tensor, target: Tensor) -> tuple[float, float]:
        """Leave the gradients of a step in the parameters; give the risk and the domain loss, in nats.

        Args:
            source, target: (B, 1, 28, 28) float in -1..1 each.
            labels: (B,) int64 complementary labels of the source.
        """
        self.optimizer.zero_grad()
        features, logits = self.classifier(source)
        risks = class_risks(logits, labels, self.proportions)
        label_loss(risks).backward(retain_graph=True)  # type: ignore[no-untyped-call]  # torch has no types here
        target_features, target_logits = self.classifier(target)
        of_source = domain_loss(
            self.discriminator,
            reversed_gradient(features, self.reversal),
            reversed_gradient(logits, self.reversal),
            1.0,
            sharpening=self.sharpening,
        )
        of_target = domain_loss(
            self.discriminator,
            reversed_gradient(target_features, self.reversal),
            reversed_gradient(target_logits, self.reversal),
            0.0,
            sharpening=self.sharpening,
        )
        (of_source + of_target).backward()  # type: ignore[no-untyped-call]
        return torch.stack(risks).sum().item(), (of_source + of_target).item()

    def step(self, source: Tensor, labels: Tensor, target: Tensor) -> tuple[float, float]:
        """Train on one batch of either domain; takes and gives what `gradients` does."""
        losses = self.gradients(source, labels, target)
        self.optimizer.step()
        return losses
