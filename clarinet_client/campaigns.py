"""Labelling efforts."""

from collections.abc import Callable, Iterator, Sequence
from typing import Unpack

from clarinet_client import finding
from clarinet_client import operations as op
from clarinet_client.errors import Failed
from clarinet_client.groups import Group
from clarinet_client.shapes.campaigns import (
    Audit,
    Campaign,
    Drawings,
    NewCampaign,
    NewClass,
    Policy,
    Progress,
)
from clarinet_client.waiting import look_until


class Campaigns(Group):
    """Labelling efforts: a source dataset, ordered classes, a policy, a state."""

    def all(self, *, dataset_id: str | None = None, archived: bool = False) -> Iterator[Campaign]:
        """Every campaign that is not archived, newest first, or those that are; or those over a dataset."""
        query = {"dataset_id": dataset_id, "archived": archived or None}
        return self._connection.items(op.LIST_CAMPAIGNS, query=query)

    def get(self, campaign_id: str) -> Campaign:
        """One campaign."""
        return self._connection.call(op.GET_CAMPAIGN, campaign_id=campaign_id)

    def find(self, wanted: str) -> Campaign:
        """A campaign by its name or id, an archived one if no other bears it.

        Raises:
            NotFound: there is none.
        """
        return finding.named("campaign", wanted, self.all(), self.all(archived=True))

    def create(
        self,
        name: str,
        dataset_id: str,
        *,
        classes: Sequence[str | NewClass] = (),
        key: str = "",
        **policy: Unpack[Policy],
    ) -> Campaign:
        """Draft a campaign over the train images of a dataset.

        Args:
            name: what people call it.
            dataset_id: of the source.
            classes: their names, in order, or more about each; none: the dataset's own.
            key: an Idempotency-Key of your own.
            policy: how it asks; what is not said is as on the page.
        """
        named: list[NewClass] = [{"name": one} if isinstance(one, str) else one for one in classes]
        body: NewCampaign = {"name": name, "dataset_id": dataset_id, "classes": named, **policy}
        return self._connection.call(op.CREATE_CAMPAIGN, body=body, key=key)

    def ask_to_open(self, campaign_id: str) -> Campaign:
        """Have the questions drawn, or let a paused campaign go on; `wait` waits for it."""
        return self._connection.call(op.OPEN_CAMPAIGN, campaign_id=campaign_id)

    def wait(
        self,
        campaign_id: str,
        *,
        on_look: Callable[[Campaign], None] | None = None,
        timeout_s: float | None = None,
    ) -> Campaign:
        """Wait until its questions are drawn.

        Raises:
            Failed: they could not be.
            TookTooLong: they were not in time.
        """
        row = look_until(
            lambda: self.get(campaign_id),
            lambda row: row["state"] != "draft" or bool(row["opening_failure"]),
            what="The opening",
            on_look=on_look,
            timeout_s=timeout_s,
        )
        if row["state"] == "draft":
            raise Failed(row["opening_failure"] or "The questions were not drawn.", row)
        return row

    def open(self, campaign_id: str, *, timeout_s: float | None = None) -> Campaign:
        """Open a campaign and wait until people can answer; raises like `wait`."""
        self.ask_to_open(campaign_id)
        return self.wait(campaign_id, timeout_s=timeout_s)

    def pause(self, campaign_id: str) -> Campaign:
        """Hand out no more questions until it is opened again."""
        return self._connection.call(op.PAUSE_CAMPAIGN, campaign_id=campaign_id)

    def close(self, campaign_id: str) -> Campaign:
        """Take no more answers, for good, and reveal the seed of the draws."""
        return self._connection.call(op.CLOSE_CAMPAIGN, campaign_id=campaign_id)

    def ask_further(self, campaign_id: str) -> Drawings:
        """Have questions drawn about images that joined since; `wait_for_drawing` waits for them."""
        return self._connection.call(op.ASK_FURTHER, campaign_id=campaign_id)

    def wait_for_drawing(
        self,
        campaign_id: str,
        *,
        on_look: Callable[[Drawings], None] | None = None,
        timeout_s: float | None = None,
    ) -> Drawings:
        """Wait until the latest drawing is done; raises like `wait`."""
        row = look_until(
            lambda: self._connection.call(op.GET_DRAWINGS, campaign_id=campaign_id),
            lambda row: bool(row["items"][-1]["drawn_at"] or row["items"][-1]["failure"]),
            what="The drawing",
            on_look=on_look,
            timeout_s=timeout_s,
        )
        if failure := row["items"][-1]["failure"]:
            raise Failed(failure, row)
        return row

    def progress(self, campaign_id: str) -> Progress:
        """How far it is."""
        return self._connection.call(op.GET_PROGRESS, campaign_id=campaign_id)

    def audit(self, campaign_id: str, *, recompute: bool = False) -> Audit:
        """Whether its draws are as promised; `recompute`: the server draws anew to compare."""
        return self._connection.call(op.GET_AUDIT, query={"recompute": recompute}, campaign_id=campaign_id)
