"""Models with random weights for tests of the ONNX export, and what says whether a file predicts alike."""

from dataclasses import replace
from pathlib import Path

import onnxruntime
import torch
from torch import Tensor

from clarinet.data.seeding import generator, seed_global
from clarinet.networks.classifier import Classifier, ModelSpec
from clarinet.run.evaluation import predict

GREY = ModelSpec(
    architecture="lenet",
    channels=1,
    image_size=28,
    input_normalisation="range",
    norm_per_domain=False,
    num_classes=10,
)
INK = replace(GREY, greying="ink")
DARK_INK = replace(GREY, greying="dark-ink")
COLOUR = ModelSpec(
    architecture="dann",
    channels=3,
    image_size=28,
    input_normalisation="instance",
    norm_per_domain=True,
    num_classes=4,
)
PHOTO = ModelSpec(
    architecture="resnet18",
    channels=3,
    image_size=32,
    input_normalisation="imagenet",
    norm_per_domain=True,
    num_classes=4,
)


def make_model(spec: ModelSpec) -> Classifier:
    """Random weights whose predictions are far from uniform, and batch statistics that differ by domain."""
    with torch.random.fork_rng():
        seed_global(torch.device("cpu"), 0, "test")
        model = Classifier(spec)
        with torch.no_grad():
            model.predictor.weight *= 2 if spec is PHOTO else 20
            for name, buffer in model.named_buffers():
                if name.endswith("mean"):
                    buffer.copy_((torch.rand(buffer.shape) - 0.5) / 5)
                if name.endswith("variance"):
                    buffer.copy_(torch.rand(buffer.shape) + 0.5)
    return model.eval()


def noise(count: int, *shape: int) -> Tensor:
    """uint8 images (N, ...) from dark to light."""
    pixels = torch.randint(256, (count, *shape), generator=generator(0, "noise"))
    light = torch.linspace(0.1, 1, count).reshape(-1, *(1 for _ in shape))
    return (pixels * light).to(torch.uint8)


def run(path: Path, images: Tensor) -> Tensor:
    """(N, K) probabilities by onnxruntime."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    planes = images if images.ndim == 4 else images[..., None]
    [probabilities] = session.run(None, {"images": planes.numpy()})
    return torch.from_numpy(probabilities)


def assert_equal_predictions(path: Path, model: Classifier, images: Tensor) -> None:
    ours, theirs = predict(model, images), run(path, images)
    assert len(images) < 2 or float(ours.std(0).max()) > 0.01  # else agreement would say nothing
    assert theirs.shape == ours.shape
    torch.testing.assert_close(theirs, ours, atol=1e-4, rtol=0)
    assert torch.equal(theirs.argmax(1), ours.argmax(1))
