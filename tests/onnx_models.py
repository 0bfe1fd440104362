"""Tiny models as ONNX: what they say follows from how bright a picture is."""

import hashlib
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper
from sqlalchemy.orm import Session

from app.registry import service
from app.registry.models import Model
from app.stores.folder import FolderStorage
from tests.factories import NOW, make_run

OPSET = 18


def bright_onnx(levels: Sequence[float], *, channels: int = 1, size: int | str = 8) -> bytes:
    """Softmax of minus the distance between a picture's mean level and each class's, in units of 20 levels.

    It takes uint8 (N, size, size, channels); a size that is text may be any. No two have the same digest.
    """
    shape: list[str | int | None] = (
        ["N", size, size, channels] if isinstance(size, int) else ["N", "H", "W", channels]
    )
    constants: dict[str, NDArray[Any]] = {
        "levels": np.array([levels], np.float32),
        "axes": np.array([1, 2, 3], np.int64),
        "rest": np.array([1], np.int64),
        "unit": np.array(-20, np.float32),
    }
    nodes = [
        helper.make_node("Cast", ["images"], ["pixels"], to=TensorProto.FLOAT),
        helper.make_node("ReduceMean", ["pixels", "axes"], ["mean"], keepdims=0),
        helper.make_node("Unsqueeze", ["mean", "rest"], ["column"]),
        helper.make_node("Sub", ["column", "levels"], ["off"]),
        helper.make_node("Abs", ["off"], ["distance"]),
        helper.make_node("Div", ["distance", "unit"], ["logits"]),
        helper.make_node("Softmax", ["logits"], ["probabilities"], axis=1),
    ]
    graph = helper.make_graph(
        nodes,
        "bright",
        [helper.make_tensor_value_info("images", TensorProto.UINT8, shape)],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["N", len(levels)])],
        [onnx.numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    made = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9, doc_string=uuid4().hex
    )
    data: bytes = made.SerializeToString()
    return data


def make_model(
    session: Session,
    storage: FolderStorage,
    *,
    classes: Sequence[str] = ("dark", "light"),
    onnx_file: bytes | None = None,
    image_size: int = 8,
) -> Model:
    """A published model with an ONNX file; of the given classes the later ones are brighter. It commits."""
    run = make_run(session, storage, train=2, state="succeeded")
    key = service.key_of(run.trials[0].id, 1)
    if onnx_file is None:
        onnx_file = bright_onnx([255 * place / (len(classes) - 1) for place in range(len(classes))])
    digest = storage.put(f"{key}/{service.ONNX}", onnx_file)
    weights = uuid4().bytes
    card: dict[str, Any] = {
        "run": run.number,
        "run_id": str(run.id),
        "seed": 0,
        "method": run.method,
        "setting": run.setting,
        "preset": run.preset,
        "classes": list(classes),
        "config": {"method": run.method, "image_size": image_size},
        "labels": run.snapshot_facts,
        "label_snapshot": run.snapshot_digest,
        "target_accuracy": None,
        "confusion": None,
        "epochs": 2,
        "seconds": 1.5,
        "versions": {},
        "onnx": {"sha256": digest, "size_bytes": len(onnx_file)},
    }
    model = service.publish_model(
        session,
        trial_id=run.trials[0].id,
        key=key,
        digest=hashlib.sha256(weights).hexdigest(),
        size_bytes=len(weights),
        card=card,
        now=NOW,
    )
    session.commit()
    return model
