"""What `clarinet predict` says of a picture, the API says: digits and photographs, as people send them."""

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from PIL import Image
from sqlalchemy.orm import Session

from app.accounts.models import User
from app.errors import AppError
from app.stores.folder import FolderStorage
from clarinet.commands.cli import main
from clarinet.export.onnx import ONNX, WEIGHTS, export_onnx
from clarinet.networks.classifier import ModelSpec
from clarinet.run.tensor_files import write_tensors
from clarinet_client import Client
from tests.clarinet.exported import GREY, INK, PHOTO
from tests.clarinet.exported import make_model as make_network
from tests.factories import make_token
from tests.onnx_models import make_model
from worker.cli.predicting import write_predictions


def pictures(folder: Path) -> list[Path]:
    """Bars as people may send them: of any size, mode, kind of file and turn."""
    noise = np.random.default_rng(0)
    folder.mkdir()
    for place in range(3):
        pixels = noise.integers(0, 40, (61, 52), dtype=np.uint8)
        pixels[8 + 15 * place :][:9, 9:43] = 190
        tinted = np.stack([pixels, 255 - pixels, pixels // 2], axis=2)
        turned = Image.Exif()
        turned[0x0112] = 6
        Image.fromarray(pixels).save(folder / f"{place}-grey.png")
        Image.fromarray(pixels).resize((28, 28)).save(folder / f"{place}-small.png")
        Image.fromarray(tinted).save(folder / f"{place}-colour.webp", lossless=True)
        Image.fromarray(tinted).resize((640, 480)).save(folder / f"{place}-photo.jpg", exif=turned)
        Image.fromarray(pixels.astype(np.uint16) * 257).save(folder / f"{place}-deep.png")
        Image.fromarray(tinted).convert("P").save(folder / f"{place}-palette.gif")
        Image.fromarray(np.dstack([tinted, pixels])).save(folder / f"{place}-clear.png")
    return sorted(folder.iterdir())


@dataclass(frozen=True)
class Published:
    """A model as its run leaves it: weights with their card, and ONNX."""

    folder: Path
    classes: list[str]
    side: int  # pixels that the network sees


CASES: dict[str, tuple[ModelSpec, bool]] = {
    "digits": (GREY, False),
    "digits in colour, as ink": (INK, True),
    "photographs": (PHOTO, True),
}


_MADE: dict[str, Published] = {}  # for both databases, because an export takes seconds


@pytest.fixture(params=CASES)
def trained(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Published:
    """A model whose target is grey or in colour, for each way in which a network sees pictures."""
    if request.param not in _MADE:
        _MADE[request.param] = _made(*CASES[request.param], tmp_path_factory.mktemp("model"))
    return _MADE[request.param]


def _made(spec: ModelSpec, in_colour: bool, folder: Path) -> Published:
    model = make_network(spec)
    shape = (spec.image_size, spec.image_size, *([3] if in_colour else []))
    classes = [f"class {place}" for place in range(spec.num_classes)]
    card = {"classes": classes, "data": {"target": {"shape": list(shape)}}}
    header = {"spec": spec.to_dict(), "card": card}
    write_tensors(folder / WEIGHTS, model.state_dict(), header, kind="model")
    export_onnx(folder / ONNX, model, image_shape=shape, card=card)
    return Published(folder, classes, spec.image_size)


@pytest.mark.long(but=["sqlite-digits"])
def test_the_same_class_and_the_same_probabilities(
    client: TestClient, session: Session, storage: FolderStorage, trained: Published, tmp_path: Path
) -> None:
    sent = pictures(tmp_path / "pictures")
    words = [
        "predict",
        "--model",
        str(trained.folder),
        "--images",
        str(tmp_path / "pictures"),
        "--device",
        "cpu",
    ]
    assert main([*words, "--out", str(tmp_path / "out.csv")]) == 0
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))[1:]
    model = make_model(
        session,
        storage,
        classes=trained.classes,
        onnx_file=(trained.folder / ONNX).read_bytes(),
        image_size=trained.side,
    )

    answer = client.post(
        f"/api/v1/models/{model.id}/predict",
        files=[("pictures", (file.name, file.read_bytes())) for file in sent],
    )

    said = answer.json()["pictures"]
    assert [one["name"] for one in said] == [row[0] for row in rows]
    assert [one["predicted_class"] for one in said] == [row[1] for row in rows]
    theirs = np.array([one["probabilities"] for one in said])
    np.testing.assert_allclose(theirs, [[float(cell) for cell in row[2:]] for row in rows], atol=1e-4)
    assert float(theirs.std(0).max()) > 0.01  # else agreement would say nothing


class WithoutNetwork(TestClient):
    """What the client calls; nothing takes long here."""

    def request(self, method: str, url: Any, **details: Any) -> Any:
        """The answer."""
        details.pop("timeout", None)
        return super().request(method, url, **details)


def test_the_command_for_a_server_writes_the_same_table(
    app: FastAPI, session: Session, storage: FolderStorage, admin: User, tmp_path: Path
) -> None:
    """Through the client of programs; what cannot be read is refused, or left out where that is asked for."""
    sent = pictures(tmp_path / "pictures")
    (tmp_path / "pictures/3-notes.png").write_bytes(b"no picture")
    trained = _made(GREY, False, tmp_path)
    onnx = (trained.folder / ONNX).read_bytes()
    model = make_model(session, storage, classes=trained.classes, onnx_file=onnx, image_size=trained.side)
    images, theirs, ours = tmp_path / "pictures", tmp_path / "theirs.csv", tmp_path / "ours.csv"
    words = ["predict", "--model", str(tmp_path), "--images", str(images), "--device", "cpu", "--skip-bad"]
    assert main([*words, "--out", str(theirs)]) == 0
    looks: list[object] = []

    with Client("http://testserver", make_token(session, admin)) as client:
        session.commit()
        client._connection._http = WithoutNetwork(
            app, base_url="http://testserver/api/v1/", headers=dict(client._connection._http.headers)
        )
        row = client.models.get(str(model.id))
        with pytest.raises(AppError, match=r"(?s)3-notes.png.* is not a PNG.*ours.csv was not written"):
            write_predictions(client, row, images, ours, skip_bad=False, on_look=looks.append)
        assert not ours.exists()
        written = write_predictions(client, row, images, ours, skip_bad=True, on_look=looks.append)
        with pytest.raises(AppError, match="neither a folder of images nor a file"):
            write_predictions(client, row, tmp_path / "none", ours, skip_bad=True, on_look=looks.append)

    tables = [list(csv.reader(path.read_text(encoding="utf-8").splitlines())) for path in (theirs, ours)]
    assert written.images == len(sent) == len(tables[1]) - 1
    assert [one.split(" ")[0] for one in written.left_out] == ['"3-notes.png"']
    assert looks[-1] == (len(sent) + 1, len(sent) + 1)
    assert [row[:2] for row in tables[0]] == [row[:2] for row in tables[1]]
    assert tables[0][0] == tables[1][0]
    shares = [np.array([row[2:] for row in table[1:]], float) for table in tables]
    np.testing.assert_allclose(shares[0], shares[1], atol=1e-4)
