"""Trained networks."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from clarinet_client import operations as op
from clarinet_client.groups import Group
from clarinet_client.shapes.runs import Model, Pictures


class Models(Group):
    """What trials have published."""

    def all(
        self, *, run_id: str | None = None, campaign_id: str | None = None, dataset_id: str | None = None
    ) -> Iterator[Model]:
        """Every model, newest first; those of a run, a campaign, or a source or target dataset."""
        query = {"run_id": run_id, "campaign_id": campaign_id, "dataset_id": dataset_id}
        return self._connection.items(op.LIST_MODELS, query=query)

    def get(self, model_id: str) -> Model:
        """One model with its card."""
        return self._connection.call(op.GET_MODEL, model_id=model_id)

    def save(self, model_id: str, to: str | Path) -> Path:
        """Keep weights (safetensors), cards and ONNX as a zip: at a path, or in a folder."""
        return self._connection.save(op.GET_ARCHIVE, to, model_id=model_id)

    def save_onnx(self, model_id: str, to: str | Path) -> Path:
        """Keep it as ONNX.

        Raises:
            NotFound: it has none.
        """
        return self._connection.save(op.GET_ONNX, to, model_id=model_id)

    def predict(self, model_id: str, pictures: Sequence[tuple[str, bytes]]) -> Pictures:
        """What it says of up to 64 pictures, each a name and the bytes of its file.

        Raises:
            TooMany: more pictures wait than may; come again.
        """
        return self._connection.call(op.PREDICT_PICTURES, files={"pictures": pictures}, model_id=model_id)
