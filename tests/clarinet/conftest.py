"""What every test of the library starts from."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

from clarinet.recipes import source_accuracy
from clarinet.reproduction.tasks import TASKS, TaskData, load_task
from tests.clarinet.factories import in_memory, make_data, write_digits


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Equal results are promised for equal numbers of threads; one is also fastest for tensors this small."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session", autouse=True)
def one_registry() -> Iterator[None]:
    """What PyTorch's exporter reads anew for each export, in a third of a second: read once."""
    from torch.onnx._internal.exporter import _registration

    with pytest.MonkeyPatch.context() as patch:
        once = cache(_registration.ONNXRegistry.from_torchlib)
        patch.setattr(_registration.ONNXRegistry, "from_torchlib", staticmethod(once))
        yield


@pytest.fixture
def few_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """One held-out label gives an estimate: tests have few images."""
    monkeypatch.setattr(source_accuracy, "NEEDED", 1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data of U->M and M->U."""
    path = tmp_path_factory.mktemp("data")
    write_digits(path / "usps_28x28.npz", 64, seed=0)
    write_digits(path / "mnist.npz", 80, seed=1)
    return path


@pytest.fixture(scope="module")
def data(folder: Path) -> TaskData:
    return load_task(TASKS["U->M"], folder)


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """Arguments for a source and a target file of bars."""
    data = make_data(64, true_rows=64)
    assert data.target_test_labels is not None
    np.savez(tmp_path / "a.npz", x_train=in_memory(data.source_images).numpy(), y_train=data.true.numpy())
    np.savez(
        tmp_path / "b.npz",
        x_train=in_memory(data.target_images).numpy(),
        x_test=in_memory(data.target_images).numpy(),
        y_test=data.target_test_labels.numpy(),
    )
    return [
        "train",
        "--source",
        str(tmp_path / "a.npz"),
        "--target",
        str(tmp_path / "b.npz"),
        "--device",
        "cpu",
    ]
