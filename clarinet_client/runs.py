"""Trainings."""

from collections.abc import Callable, Iterator
from typing import Unpack

from clarinet_client import operations as op
from clarinet_client.finding import named
from clarinet_client.groups import Group
from clarinet_client.shapes.runs import Metric, NewRun, Run, RunChoices, RunSummary
from clarinet_client.waiting import look_until


class Runs(Group):
    """Trainings on a campaign's labels."""

    def all(
        self, *, campaign_id: str | None = None, dataset_id: str | None = None, archived: bool = False
    ) -> Iterator[RunSummary]:
        """Every run that was not put away, newest first, or those that were.

        `campaign_id`, `dataset_id`: only those of a campaign, or those whose source or target a dataset is.
        """
        query = {"campaign_id": campaign_id, "dataset_id": dataset_id, "archived": archived or None}
        return self._connection.items(op.LIST_RUNS, query=query)

    def get(self, run_id: str) -> Run:
        """One run with its trials."""
        return self._connection.call(op.GET_RUN, run_id=run_id)

    def find(self, wanted: str) -> Run:
        """A run by its number or id, whether it was put away or not.

        Raises:
            NotFound: there is none.
        """
        return self.get(named("run", wanted, self.all(), self.all(archived=True))["id"])

    def launch(
        self, campaign_id: str, target_dataset_id: str, *, key: str = "", **choices: Unpack[RunChoices]
    ) -> Run:
        """Freeze the campaign's labels and queue one trial for each seed.

        Args:
            campaign_id: whose labels.
            target_dataset_id: where predictions are wanted.
            key: an Idempotency-Key of your own: the same request under it launches one run.
            choices: method, setting, preset, seeds, config, note; what is not said follows from the images.
        """
        body: NewRun = {"target_dataset_id": target_dataset_id, **choices}
        return self._connection.call(op.START_RUN, body=body, key=key, campaign_id=campaign_id)

    def wait(
        self, run_id: str, *, on_look: Callable[[Run], None] | None = None, timeout_s: float | None = None
    ) -> Run:
        """Wait for the end, good or bad; the run's state and its trials' failures say which.

        Raises:
            TookTooLong: it had not ended in time.
        """
        return look_until(
            lambda: self.get(run_id),
            lambda row: row["state"] not in {"queued", "running"},
            what="The end of the run",
            on_look=on_look,
            timeout_s=timeout_s,
        )

    def metrics(self, run_id: str) -> list[Metric]:
        """What its trials reported after each epoch, by seed and epoch."""
        return [*self._connection.items(op.LIST_METRICS, run_id=run_id)]

    def cancel(self, run_id: str) -> Run:
        """Ask for its end; its trials end within seconds.

        Raises:
            Conflict: nothing of it waits or trains.
        """
        return self._connection.call(op.CANCEL_RUN, run_id=run_id)
