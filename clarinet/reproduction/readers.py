"""The data sets of the paper's tasks, read from a folder: npz files, or the forms they are published in."""

import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy as np
import torch
from torch import Tensor

from clarinet.data.folders import load_folder, load_listed
from clarinet.data.npz import read_npz
from clarinet.recipes.errors import DataError, DataNotFound
from clarinet.reproduction.cameras import two_cameras
from clarinet.reproduction.synthetic import recipe_of

PACS_CLASSES = ("dog", "elephant", "giraffe", "guitar", "horse", "house", "person")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Domain:
    """Images of one domain with their true classes.

    Args:
        name: what it is, from which file, and how many images, for every result that rests on it.
        x_train, x_test: uint8, (N, H, W) or (N, H, W, 3); x_test is None where there is none.
        y_train, y_test: (N,) int64.
    """

    name: str
    x_train: Tensor
    y_train: Tensor
    x_test: Tensor | None
    y_test: Tensor | None


Arrays = dict[str, Tensor]


@dataclass(frozen=True, slots=True)
class _Form:
    """One way in which a data set lies on a disk: the files that show it, its reader, what else to know."""

    files: tuple[str, ...]
    read: Callable[[Path], Arrays]
    content: str = ""


@dataclass(frozen=True, slots=True)
class _DataSet:
    title: str
    forms: tuple[_Form, ...]
    download: Callable[[Path], Any] | None = None
    advice: str = ""


def read_domain(name: str, folder: Path, *, download: bool = False) -> Domain:
    """Read a data set from a folder.

    Args:
        name: one of DATA_SETS.
        folder: where its files lie.
        download: let torchvision fetch it into the folder if it is not there.

    Raises:
        DataNotFound: it is not there; the message says what to put where.
        DataError: it is there and cannot be read.
    """
    require_data([name], folder, download=download)
    data_set = DATA_SETS[name]
    form = _present(data_set, folder)
    if form is None and data_set.download:
        _guarded(data_set.title, data_set.download, folder)
        form = _present(data_set, folder)
    if form is None:
        raise DataNotFound(_missing(data_set, folder))
    arrays = _guarded(data_set.title, form.read, folder)
    if "x_train" not in arrays or "y_train" not in arrays:
        raise DataError(f"{folder / form.files[0]} lacks x_train or y_train")
    if ("x_test" in arrays) != ("y_test" in arrays):
        raise DataError(f"{folder / form.files[0]} has x_test or y_test without the other")
    return Domain(
        name=_described(data_set.title, form, arrays, folder),
        x_train=arrays["x_train"],
        y_train=arrays["y_train"],
        x_test=arrays.get("x_test"),
        y_test=arrays.get("y_test"),
    )


def require_data(names: Iterable[str], folder: Path, *, download: bool = False) -> None:
    """Look whether data sets are there, or can be fetched, without reading them.

    Raises:
        DataNotFound: as `read_domain`, of all that are not.
    """
    wanted = (DATA_SETS[name] for name in names)
    missing = [
        _missing(data_set, folder)
        for data_set in wanted
        if _present(data_set, folder) is None and not (download and data_set.download)
    ]
    if missing:
        raise DataNotFound(". And ".join(missing))


def _present(data_set: _DataSet, folder: Path) -> _Form | None:
    there = (form for form in data_set.forms if all((folder / file).exists() for file in form.files))
    return next(there, None)


def _missing(data_set: _DataSet, folder: Path) -> str:
    return f"no {data_set.title} in {folder}: put there {_forms(data_set)}"


def _forms(data_set: _DataSet) -> str:
    forms = "; or ".join(" and ".join(form.files) + form.content for form in data_set.forms)
    fetch = "; or let --download fetch it" if data_set.download else ""
    return f"{forms}{fetch}{data_set.advice}"


def what_to_put(name: str) -> str:
    """What to put into a folder of data for a data set of DATA_SETS, in a line."""
    return f"{DATA_SETS[name].title}: {_forms(DATA_SETS[name])}"


def _guarded(title: str, read: Callable[[Path], Any], folder: Path) -> Any:
    """What a reader returns, its refusals as sentences; torchvision's readers raise all of these."""
    try:
        return read(folder)
    except DataError:
        raise
    except (OSError, RuntimeError, ValueError, LookupError, EOFError, AssertionError, TypeError) as error:
        said = str(error) or type(error).__name__
        raise DataError(f"{title} in {folder} cannot be read: {said}") from error
    except ImportError as error:
        raise DataError(f"reading {title} needs a package that is not installed: {error}") from error


def _described(title: str, form: _Form, arrays: Arrays, folder: Path) -> str:
    made = recipe_of(folder / form.files[0])
    tested = f" + {len(arrays['x_test']):,}" if "x_test" in arrays else ""
    counted = f"{len(arrays['x_train']):,}{tested} images"
    return f"{title} ({f'{made}; ' if made else ''}{' and '.join(form.files)}, {counted})"


def _npz(file: str) -> _Form:
    arrays = " (x_train, y_train; x_test, y_test for a target)"
    return _Form((file,), lambda folder: read_npz(folder / file)[0], arrays)


def _whole_mnist_m(folder: Path) -> Arrays:
    """Both parts of the training images, in the order of the release, which `idx_train` tells."""
    paths = [folder / "mnist_m.npz", folder / "mnist_m_train_rest.npz"]
    parts = [read_npz(path)[0] for path in paths]
    order = np.concatenate([np.load(path, allow_pickle=False)["idx_train"] for path in paths])
    place = torch.from_numpy(np.argsort(order))
    joined = {name: torch.cat([part[name] for part in parts])[place] for name in ("x_train", "y_train")}
    return parts[0] | joined


def _listed(name: str) -> _Form:
    """NAME/NAME_train/*.png with NAME/NAME_train_labels.txt, and the same for test if it is there."""
    files = (f"{name}/{name}_train", f"{name}/{name}_train_labels.txt")

    def read(folder: Path) -> Arrays:
        x, y = load_listed(folder / files[0], folder / files[1])
        tests = [folder / file.replace("train", "test") for file in files]
        if not all(path.exists() for path in tests):
            return {"x_train": x, "y_train": y}
        x_test, y_test = load_listed(*tests)
        return {"x_train": x, "y_train": y, "x_test": x_test, "y_test": y_test}

    return _Form(files, read, " (and test likewise for a target)")


def _class_folders(name: str) -> _Form:
    """NAME/train/DIGIT/*.png, and the same for test if it is there."""

    def read(folder: Path) -> Arrays:
        arrays, classes = load_folder(folder / name, side=None)
        if not classes or not all(digit.isdecimal() for digit in classes):
            raise DataError(f"{folder / name} needs a folder for each digit, 0 to 9; it has {classes}")
        digits = torch.tensor([int(digit) for digit in classes])
        labels = {split: digits[arrays[split]] for split in ("y_train", "y_test") if split in arrays}
        return arrays | labels

    return _Form(
        (f"{name}/train",), read, f" (a folder of images for each digit, 0 to 9; {name}/test for a target)"
    )


def _split(train: Any, test: Any, images: Callable[[Any], Any], labels: str) -> Arrays:
    """The four arrays of two torchvision data sets, which have no types."""
    return {
        "x_train": torch.as_tensor(images(train.data)),
        "y_train": torch.as_tensor(getattr(train, labels)).long(),
        "x_test": torch.as_tensor(images(test.data)),
        "y_test": torch.as_tensor(getattr(test, labels)).long(),
    }


def _as_they_are(images: Any) -> Any:
    return images


def _channels_last(images: Any) -> Any:
    """(N, 3, H, W) to (N, H, W, 3)."""
    return np.ascontiguousarray(np.moveaxis(images, 1, 3))


def _mnist(folder: Path, *, download: bool = False) -> Arrays:
    from torchvision.datasets import MNIST  # noqa: PLC0415 - a second to import, and most readers need none

    train, test = (MNIST(folder, train=part, download=download) for part in (True, False))
    return _split(train, test, _as_they_are, "targets")


def _usps(folder: Path, *, download: bool = False) -> Arrays:
    from torchvision.datasets import USPS  # noqa: PLC0415

    train, test = (USPS(folder, train=part, download=download) for part in (True, False))
    return _split(train, test, _as_they_are, "targets")


def _svhn(folder: Path, *, download: bool = False) -> Arrays:
    from torchvision.datasets import SVHN  # noqa: PLC0415

    train, test = (SVHN(folder, split=split, download=download) for split in ("train", "test"))
    return _split(train, test, _channels_last, "labels")


def _syn_digits(folder: Path) -> Arrays:
    """As DANN's authors published it: like SVHN's files, which torchvision reads by their digests alone."""
    from scipy.io import loadmat  # noqa: PLC0415
    from scipy.io.matlab import MatReadError  # noqa: PLC0415

    arrays: Arrays = {}
    for part in ("train", "test"):
        path = folder / f"synth_{part}_32x32.mat"
        try:
            values = loadmat(path, variable_names=("X", "y"))
        except (zlib.error, MatReadError) as error:
            raise DataError(f"{path} is damaged: {error}") from error
        images = np.ascontiguousarray(np.moveaxis(values["X"], 3, 0))  # (H, W, 3, N) to (N, H, W, 3)
        arrays[f"x_{part}"] = torch.from_numpy(images)
        arrays[f"y_{part}"] = torch.from_numpy(values["y"].reshape(-1).astype(np.int64)) % 10  # 10 is a 0
    return arrays


def _cifar10(folder: Path, *, download: bool = False) -> Arrays:
    from torchvision.datasets import CIFAR10  # noqa: PLC0415

    train, test = (CIFAR10(folder, train=part, download=download) for part in (True, False))
    return _split(train, test, _as_they_are, "targets")


def _stl10(folder: Path, *, download: bool = False) -> Arrays:
    from torchvision.datasets import STL10  # noqa: PLC0415

    train, test = (STL10(folder, split=split, download=download) for split in ("train", "test"))
    return _split(train, test, _channels_last, "labels")


def _cameras(*, second: bool) -> tuple[_Form, ...]:
    """The forms of CIFAR-10, small ones first: half of its photographs, as one of two cameras sees them."""

    def seen(read: Callable[[Path], Arrays]) -> Callable[[Path], Arrays]:
        return lambda folder: two_cameras(read(folder), second=second)

    forms = (_npz("cifar10_subset.npz"), _npz("cifar10.npz"), _Form(("cifar-10-batches-py",), _cifar10))
    return tuple(replace(form, read=seen(form.read)) for form in forms)


def _pacs(look: str) -> tuple[_Form, ...]:
    """PACS by one look, CLASS/*: no split is official, so all images train, and all of a target score."""

    def read(folder: Path) -> Arrays:
        arrays, classes = load_folder(folder, side=None)
        if classes != list(PACS_CLASSES):
            raise DataError(f"{look} of PACS needs the classes {', '.join(PACS_CLASSES)}; it has {classes}")
        return arrays | {"x_test": arrays["x_train"], "y_test": arrays["y_train"]}

    def unpacked(archive: Path) -> Arrays:
        try:
            with ZipFile(archive) as images, TemporaryDirectory() as place:
                images.extractall(place)
                return read(Path(place))
        except BadZipFile as error:
            raise DataError(f"{archive} is damaged: {error}") from error

    zipped, plain = f"pacs_{look}.zip", f"PACS/{look}"
    return (
        _Form((zipped,), lambda folder: unpacked(folder / zipped), " (CLASS/*.jpg in it)"),
        _Form((plain,), lambda folder: read(folder / plain), " (a folder CLASS/*.jpg)"),
    )


def _fetch(read: Callable[..., Arrays]) -> Callable[[Path], Any]:
    return lambda folder: read(folder, download=True)


DATA_SETS: Mapping[str, _DataSet] = MappingProxyType(
    {
        "mnist": _DataSet(
            "MNIST",
            (_npz("mnist.npz"), _Form(("MNIST/raw/train-images-idx3-ubyte",), _mnist)),
            _fetch(_mnist),
        ),
        "usps": _DataSet(
            "USPS",
            (
                _npz("usps_28x28.npz"),
                _Form(("usps.bz2", "usps.t.bz2"), _usps),
                _npz("usps_16x16.npz"),
            ),
            _fetch(_usps),
        ),
        "svhn": _DataSet(
            "SVHN",
            (_npz("svhn.npz"), _Form(("train_32x32.mat", "test_32x32.mat"), _svhn)),
            _fetch(_svhn),
        ),
        "mnist_m": _DataSet(
            "MNIST-M",
            (
                _Form(("mnist_m.npz", "mnist_m_train_rest.npz"), _whole_mnist_m),
                _npz("mnist_m.npz"),
                _listed("mnist_m"),
                _class_folders("mnist_m"),
            ),
        ),
        "syn_digits": _DataSet(
            "SYN-DIGITS",
            (
                _npz("syn_digits.npz"),
                _Form(("synth_train_32x32.mat", "synth_test_32x32.mat"), _syn_digits),
                _listed("syn_digits"),
                _class_folders("syn_digits"),
            ),
            advice="; or make it anew with clarinet make-syn-digits",
        ),
        "cifar10": _DataSet(
            "CIFAR-10",
            (
                _npz("cifar10.npz"),
                _Form(("cifar-10-batches-py",), _cifar10),
                _npz("cifar10_subset.npz"),
            ),
            _fetch(_cifar10),
        ),
        "camera_1": _DataSet("CIFAR-10 by the first camera", _cameras(second=False), _fetch(_cifar10)),
        "camera_2": _DataSet("CIFAR-10 by the second camera", _cameras(second=True), _fetch(_cifar10)),
        "photo": _DataSet("PACS photographs, all of which score", _pacs("photo")),
        "art_painting": _DataSet("PACS paintings, all of which score", _pacs("art_painting")),
        "sketch": _DataSet("PACS sketches, all of which score", _pacs("sketch")),
        "stl10": _DataSet("STL-10", (_npz("stl10.npz"), _Form(("stl10_binary",), _stl10)), _fetch(_stl10)),
    }
)
"""Name to what the data set is called and how it may lie in a folder, the preferred form first."""
