"""Trained networks."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from clarinet_client import operations as op
from clarinet_client.groups import Group
from clarinet_client.shapes.campaigns import Drawings
from clarinet_client.shapes.runs import Model, Pictures


class Models(Group):
    """What trials have published."""

    def all(
        self,
        *,
        run_id: str | None = None,
        campaign_id: str | None = None,
        dataset_id: str | None = None,
        name: str | None = None,
        alias: str | None = None,
        archived: bool = False,
    ) -> Iterator[Model]:
        """Every model that is not archived, newest first, or those that are.

        Args:
            run_id: only those of a run; `campaign_id`: of a campaign's runs.
            dataset_id: only those whose source or target it is.
            name: only versions of this name.
            alias: only those for which this word stands, archived or not.
            archived: those that are, in place of the others.
        """
        query = {"run_id": run_id, "campaign_id": campaign_id, "dataset_id": dataset_id}
        more = {"name": name, "alias": alias, "archived": archived or None}
        return self._connection.items(op.LIST_MODELS, query=query | more)

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

    def ask_round(self, model_id: str, *, floor_percent: int = 20) -> Drawings:
        """Ask people once more about images without a yes, about classes drawn by what the model believes.

        `floor_percent`: of each question's probability, shared by all possible classes alike.
        `campaigns.wait_for_drawing` waits for the questions. Our measurements do not recommend such rounds.
        """
        return self._connection.call(op.ASK_ROUND, body={"floor_percent": floor_percent}, model_id=model_id)

    def predict(self, model_id: str, pictures: Sequence[tuple[str, bytes]]) -> Pictures:
        """What it says of up to 64 pictures, each a name and the bytes of its file.

        Raises:
            TooMany: more pictures wait than may; come again.
        """
        return self._connection.call(op.PREDICT_PICTURES, files={"pictures": pictures}, model_id=model_id)

    def predict_by_alias(self, name: str, alias: str, pictures: Sequence[tuple[str, bytes]]) -> Pictures:
        """The same by the version for which an alias of a name stands now; the answer says which that is.

        Raises:
            NotFound: it stands for none.
            TooMany: more pictures wait than may; come again.
        """
        return self._connection.call(
            op.PREDICT_BY_ALIAS, files={"pictures": pictures}, name=name, alias=alias
        )
