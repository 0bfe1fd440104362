"""Files of trained weights that the operator put into a folder."""

import hashlib
import os
import pickle
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from app.accounts.errors import NotAllowed
from app.accounts.models import Role, User
from app.datasets.errors import PathNotAllowed
from app.datasets.uploads import open_server_file
from app.runs import weights
from app.runs.errors import WeightsFolderUnusable
from app.runs.weights import file_for, weights_asked_for, weights_files, weights_names

ADMIN = User(role=Role.ADMIN)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The operator's, still empty."""
    folder = tmp_path / "weights"
    folder.mkdir()
    return folder


def names(folder: Path) -> list[str]:
    """What is listed."""
    return [file.name for file in weights_files(folder, by=ADMIN)]


def test_files_are_listed_by_name_with_size_and_digest(folder: Path) -> None:
    (folder / "net.safetensors").write_bytes(b"tensors")
    (folder / "a.PTH").write_bytes(b"")
    (folder / "b c.pt").write_bytes(b"x" * 3_000_000)

    found = weights_files(folder, by=ADMIN)

    assert [(file.name, file.size_bytes) for file in found] == [
        ("a.PTH", 0),
        ("b c.pt", 3_000_000),
        ("net.safetensors", 7),
    ]
    assert found[2].digest == hashlib.sha256(b"tensors").hexdigest()
    assert found[1].digest == hashlib.sha256(b"x" * 3_000_000).hexdigest()


def test_an_empty_folder_has_none(folder: Path) -> None:
    assert weights_files(folder, by=ADMIN) == []


def test_hidden_files_folders_and_other_endings_are_left_out(folder: Path) -> None:
    for name in (".hidden.pt", "README.md", "net.pt.part", "safetensors", "new\nline.pt", "turned\u202e.pt"):
        (folder / name).write_bytes(b"x")
    (folder / "folder.pt").mkdir()
    (folder / "folder.pt" / "inside.pt").write_bytes(b"x")
    os.mkfifo(folder / "pipe.pt")
    Path(os.fsdecode(os.fsencode(folder) + b"/\xff.pt")).write_bytes(b"x")

    assert names(folder) == []


def test_links_out_of_the_folder_are_left_out(folder: Path) -> None:
    (folder.parent / "secret.pt").write_bytes(b"x")
    (folder.parent / "weights-of-others").mkdir()
    (folder.parent / "weights-of-others" / "theirs.pt").write_bytes(b"x")
    (folder / "out.pt").symlink_to(folder.parent / "secret.pt")
    (folder / "up.pt").symlink_to("../weights-of-others/theirs.pt")
    (folder / "nowhere.pt").symlink_to("not there")
    (folder / "circle.pt").symlink_to("circle.pt")
    (folder / "net.pt").write_bytes(b"x")
    (folder / "best.pt").symlink_to("net.pt")

    assert names(folder) == ["best.pt", "net.pt"]


def test_the_folder_itself_may_be_a_link(folder: Path) -> None:
    (folder / "net.pt").write_bytes(b"x")
    (folder.parent / "link").symlink_to(folder)

    assert names(folder.parent / "link") == ["net.pt"]


def test_a_file_is_read_once_and_again_when_it_changed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder / "net.pt"
    path.write_bytes(b"first")
    before = weights_files(folder, by=ADMIN)[0].digest
    with monkeypatch.context() as closed:
        closed.setattr(weights, "open_server_file", None)  # whoever reads now, fails
        again = weights_files(folder, by=ADMIN)[0].digest
    path.write_bytes(b"other")
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 1))

    after = weights_files(folder, by=ADMIN)[0].digest

    assert before == again == hashlib.sha256(b"first").hexdigest()
    assert after == hashlib.sha256(b"other").hexdigest()


def test_a_file_that_is_being_written_has_no_digest_yet(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = folder / "net.pt"
    path.write_bytes(b"half")

    def written_meanwhile(name: str, roots: list[Path]) -> object:
        path.write_bytes(b"all of it")
        return open_server_file(name, roots)

    with monkeypatch.context() as writing:
        writing.setattr(weights, "open_server_file", written_meanwhile)
        during = weights_files(folder, by=ADMIN)[0].digest

    assert during is None
    assert weights_files(folder, by=ADMIN)[0].digest == hashlib.sha256(b"all of it").hexdigest()


def test_a_file_that_may_not_be_read_is_listed_without_a_digest(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> object:  # root, who may run the tests, reads everything
        raise PathNotAllowed

    (folder / "net.pt").write_bytes(b"x")
    monkeypatch.setattr(weights, "open_server_file", refuse)

    assert [file.digest for file in weights_files(folder, by=ADMIN)] == [None]


def test_a_missing_folder_is_told_in_words(folder: Path) -> None:
    (folder / "file").write_bytes(b"x")
    (folder / "circle").symlink_to("circle")

    for path, words in (
        (folder / "no", "is not there"),
        (folder / "file", "is no folder"),
        (folder / "circle", "cannot be opened"),
    ):
        with pytest.raises(WeightsFolderUnusable, match=re.escape(f'"{path}", {words}. Make it')):
            weights_files(path, by=ADMIN)


def test_annotators_learn_nothing_of_the_folder(folder: Path) -> None:
    annotator = User(role=Role.ANNOTATOR)

    for ask in (weights_files, weights_names, partial(weights_asked_for, config={})):
        with pytest.raises(NotAllowed):
            ask(folder / "no", by=annotator)


def test_names_alone_are_listed_without_a_look_into_the_files(folder: Path) -> None:
    (folder / "net.safetensors").write_bytes(b"tensors")
    (folder / "closed.pt").symlink_to("/etc/passwd")

    assert weights_names(folder, by=ADMIN) == ["net.safetensors"]
    assert weights_names(folder / "no", by=ADMIN) == weights_names(None, by=ADMIN) == []


@pytest.mark.parametrize(
    "name", ["", "hub", "none.pt", "../weights/net.pt", "./net.pt", "/etc/passwd", "net.pt\0", 3, None]
)
def test_what_is_no_name_of_a_file_in_the_folder_finds_none(folder: Path, name: object) -> None:
    (folder / "net.pt").write_bytes(b"tensors")

    assert weights_asked_for(folder, {"pretrained": name}, by=ADMIN) == {}


def test_the_file_that_a_config_asks_for_comes_with_its_digest(folder: Path) -> None:
    for name in ("net.pt", "other.pt"):
        (folder / name).write_bytes(b"tensors")

    found = weights_asked_for(folder, {"pretrained": "net.pt", "epochs": 1}, by=ADMIN)

    assert found == {"net.pt": hashlib.sha256(b"tensors").hexdigest()}
    assert weights_asked_for(None, {"pretrained": "net.pt"}, by=ADMIN) == {}
    assert weights_asked_for(folder / "no", {"epochs": 1}, by=ADMIN) == {}
    with pytest.raises(WeightsFolderUnusable):
        weights_asked_for(folder / "no", {"pretrained": "net.pt"}, by=ADMIN)


@pytest.mark.parametrize(
    ("architecture", "file"),
    [
        ("timm/tf_efficientnet_lite0", "efficientnet-lite0-57934424.pth"),
        ("timm/tf_efficientnet_lite0.in1k", "efficientnet-lite0-57934424.pth"),
        ("resnet18", "resnet18.safetensors"),
        ("timm/resnet18d", None),
        ("efficientnet_b0", None),
        ("lenet", None),
    ],
)
def test_a_file_named_after_a_network_is_found(architecture: str, file: str | None) -> None:
    names = [
        "b0-efficientnet_b0.pt",
        "efficientnet-lite0-57934424.pth",
        "resnet18.safetensors",
        "resnet50.pt",
    ]

    assert file_for(architecture, names) == file


class _Bomb:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, ("exploded",)


def test_nothing_is_unpickled_and_torch_stays_away(folder: Path, tmp_path: Path) -> None:
    (folder / "bomb.pt").write_bytes(pickle.dumps(_Bomb()))
    program = (
        "import sys; from pathlib import Path; from app.accounts.models import Role, User; "
        "from app.runs.weights import weights_files; "
        "[file] = weights_files(Path(sys.argv[1]), by=User(role=Role.ADMIN)); "
        "print(file.name, 'torch' in sys.modules, Path('exploded').exists())"
    )

    done = subprocess.run(
        [sys.executable, "-c", program, str(folder)], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    assert done.stdout.split() == ["bomb.pt", "False", "False"]
