"""The process that predicts: warm, in batches, with bounds, and replaced when it dies."""

import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

from app.registry.inference.limits import MOST_PICTURES, MOST_WAITING
from app.registry.predict_errors import ModelCannotPredict, PredictorBusy
from app.registry.predictor import COMMAND, Predictor, Said, Sent, Served
from app.storage import StoredFileDamaged, StoredFileMissing
from app.stores.folder import FolderStorage
from tests.onnx_models import bright_onnx
from tests.pictures import grey_png

# The real process, with pictures that end it or take long.
FRAGILE = """
import os, time
import app.registry.inference.__main__ as process
pixels = process.Network.pixels
def fragile(self, data, name):
    if name == "ends it": os._exit(9)
    if name == "takes long": time.sleep(60)
    return pixels(self, data, name)
process.Network.pixels = fragile
process.main()
"""
HANGING = "import time; time.sleep(60)"


@pytest.fixture(scope="module")
def predictor() -> Iterator[Predictor]:
    with Predictor() as predictor:
        yield predictor


@pytest.fixture
def served(storage: FolderStorage) -> Served:
    """A model that tells dark from light."""
    return of_file(storage, bright_onnx([0, 255]))


def of_file(storage: FolderStorage, data: bytes) -> Served:
    """A model of two classes, with this file."""
    key = f"models/{uuid4()}/model.onnx"
    digest = storage.put(key, data)
    return Served(
        id=uuid4(),
        name="Shades",
        version=1,
        digest=digest,
        classes=("dark", "light"),
        path=str(storage.path(key)),
        sha256=digest,
        side=8,
    )


def sent(level: int, name: str = "picture") -> Sent:
    return Sent(name, grey_png(level))


def light(said: Said) -> float:
    assert said.probabilities is not None
    return said.probabilities[1]


def test_what_comes_together_runs_as_one_batch(predictor: Predictor, served: Served) -> None:
    predictor.ask(served, [sent(0)]).result()  # it is warm now
    before = predictor.batches

    with predictor._lock:  # all have come before one is taken, however slow this machine is
        asked = [predictor.ask(served, [sent(level)]) for level in range(0, 250, 20)]
    found = [light(said) for future in asked for said in future.result()]

    assert found == sorted(found)
    assert predictor.batches - before == 1


def test_a_line_that_is_full_refuses_and_an_ended_predictor_too(served: Served) -> None:
    """What is worked at counts as well: its requests keep their places in the server."""
    with Predictor(command=(sys.executable, "-c", HANGING)) as predictor:
        first = predictor.ask(served, [sent(0)])
        while not first.running():
            time.sleep(0.01)
        waiting = [predictor.ask(served, [sent(0)]) for _ in range(MOST_WAITING - 1)]

        with pytest.raises(PredictorBusy):
            predictor.ask(served, [sent(0)])

    assert all(isinstance(future.exception(), PredictorBusy) for future in [first, *waiting])


def test_who_goes_away_holds_nobody_up(predictor: Predictor, served: Served) -> None:
    gone: Future[list[Said]] = predictor.ask(served, [sent(0)] * MOST_PICTURES)
    gone.cancel()

    assert light(predictor.ask(served, [sent(255)]).result()[0]) > 0.9


@pytest.mark.parametrize("kind", ["ends it", "takes long"])
def test_a_picture_that_ends_the_process_is_refused_and_the_others_are_answered(
    kind: str, served: Served
) -> None:
    command = (sys.executable, "-c", FRAGILE)
    pictures = [sent(0, kind), sent(255)]
    patience = {"takes long": 2.0, "ends it": 30.0}[kind]
    with Predictor(command=command, patience=lambda count: patience if count else 30.0) as predictor:
        said = predictor.ask(served, pictures).result()
        again = predictor.ask(served, [sent(255)]).result()

    assert said[0].refused.startswith(f'"{kind}" ends the process that predicts')
    assert light(said[1]) == light(again[0]) > 0.9


def test_what_takes_too_long_in_all_is_not_looked_at(served: Served) -> None:
    with Predictor(longest_s=-1) as predictor:
        [said] = predictor.ask(served, [sent(0)]).result()

    assert "was not looked at" in said.refused


def test_a_model_whose_file_is_another_or_no_model_is_said(
    predictor: Predictor, served: Served, storage: FolderStorage
) -> None:
    no_model = of_file(storage, b"graph")
    no_pictures = of_file(storage, bright_onnx([0, 255], channels=2))
    gone = of_file(storage, bright_onnx([0, 255]))
    Path(gone.path).unlink()
    Path(served.path).write_bytes(bright_onnx([255, 0]))

    with pytest.raises(StoredFileDamaged):
        predictor.ask(served, [sent(0)]).result()
    with pytest.raises(StoredFileMissing):
        predictor.ask(gone, [sent(0)]).result()
    with pytest.raises(ModelCannotPredict, match="cannot be loaded"):
        predictor.ask(no_model, [sent(0)]).result()
    with pytest.raises(ModelCannotPredict, match="takes no images that can be made of pictures"):
        predictor.ask(no_pictures, [sent(0)]).result()


def test_a_model_that_takes_any_size_gets_that_of_its_network(
    predictor: Predictor, storage: FolderStorage
) -> None:
    [said] = predictor.ask(
        of_file(storage, bright_onnx([0, 255], size="any")), [sent(200)], seen=True
    ).result()

    assert light(said) > 0.9
    assert said.seen.startswith(b"\x89PNG")


def test_the_process_has_none_of_our_secrets(monkeypatch: pytest.MonkeyPatch, served: Served) -> None:
    monkeypatch.setenv("CLARINET_SESSION_SECRET", "a" * 40)
    telling = "import os, sys; sys.exit(repr(sorted(os.environ)))"

    with (
        Predictor(command=(COMMAND[0], "-c", telling)) as predictor,
        pytest.raises(ModelCannotPredict) as died,
    ):
        predictor.ask(served, [sent(0)]).result()

    assert "PYTHONPATH" in str(died.value.__cause__)
    assert "CLARINET" not in str(died.value.__cause__)


def test_a_file_that_made_room_for_others_is_fetched_again(
    predictor: Predictor, storage: FolderStorage
) -> None:
    """As a bucket's cache lets it go between the moment when somebody asks and that when it is loaded."""
    found = of_file(storage, bright_onnx([0, 255]))
    path = Path(found.path)
    data = path.read_bytes()
    path.unlink()
    fetched: list[str] = []

    def again() -> str:
        fetched.append(found.path)
        if len(fetched) == 2:  # the first copy is gone again before it is opened
            path.write_bytes(data)
        return found.path

    said = predictor.ask(replace(found, again=again), [sent(255)]).result()

    assert light(said[0]) > 0.5
    assert len(fetched) == 2
    with pytest.raises(StoredFileMissing):
        predictor.ask(replace(of_file(storage, data), path="nowhere", sha256="0"), [sent(0)]).result()
