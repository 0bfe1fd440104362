"""What the routes that compare runs and launch some beside others accept and return."""

from typing import Annotated, Any, Self
from uuid import UUID

from pydantic import BeforeValidator, Field, StrictInt, StringConstraints

from app.runs.comparing import Comparison
from app.runs.launching import PAPER, Sweep
from app.runs.list_schemas import as_list
from app.runs.models import Run
from app.runs.schemas import RunSummary
from app.schemas import Input, Output


class SweepCreate(Input):
    """Runs to launch beside one, over its labels and images, in its setting."""

    methods: list[Annotated[str, StringConstraints(max_length=40)]] = Field(
        default=list(PAPER),
        min_length=1,
        max_length=20,
        description="absent: the paper's five",
    )
    preset: Annotated[str, StringConstraints(max_length=40)] | None = Field(
        default=None, description="of each method; absent: the one that fits the images"
    )
    seeds: list[StrictInt] | None = Field(
        default=None, max_length=1000, description="of each run; absent: those of the run"
    )
    labels: list[Annotated[StrictInt, Field(ge=1, le=2**31 - 1)]] = Field(
        default=[],
        max_length=20,
        description="numbers of labels, each drawn from the run's, smaller within larger; empty: all",
    )
    download_weights: bool = Field(default=False, description="as of a run")

    def beside(self, run: Run) -> Sweep:
        """What to launch."""
        seeds = [trial.seed for trial in run.trials] if self.seeds is None else self.seeds
        return Sweep(
            methods=self.methods,
            seeds=seeds,
            labels=self.labels,
            preset=self.preset,
            download_weights=self.download_weights,
        )


class SweepForm(Input):
    """The same from the page; seeds and numbers stand in one line each."""

    methods: Annotated[list[str], BeforeValidator(as_list)] = Field(default=[], max_length=20)
    preset: Annotated[str, StringConstraints(max_length=40)] | None = None
    seeds: Annotated[str, StringConstraints(max_length=250, pattern=r"^[0-9, ]*$")] = ""
    labels: Annotated[str, StringConstraints(max_length=250, pattern=r"^[0-9, ]*$")] = ""
    download_weights: bool = False

    def beside(self, run: Run) -> Sweep:
        """What to launch."""
        seeds, labels = (
            [int(word) for word in text.replace(",", " ").split()] for text in (self.seeds, self.labels)
        )
        seeds = seeds or [trial.seed for trial in run.trials]
        return Sweep(
            methods=self.methods,
            seeds=seeds,
            labels=labels,
            preset=self.preset,
            download_weights=self.download_weights,
        )


class DifferenceRead(Output):
    """An accuracy less that of the first run, with the ends of its 95 % interval; fractions."""

    value: float
    low: float
    high: float
    basis: str = Field(description="what the interval speaks about")


class LabelDifferenceRead(Output):
    """How the frozen labels differ from those of the first run; counts by kind of label."""

    are_equal: bool = Field(description="whether it is the same file")
    mine: dict[str, int] = Field(description="labels that the first run does not have")
    others: dict[str, int] = Field(description="labels that the first run alone has")
    shared: int
    reweighted: int = Field(description="of those in both, how many weigh differently")
    examples: int = Field(description="images about which something differs")


class PointRead(Output):
    """The accuracy on the target after an epoch, over the seeds that got there."""

    epoch: int
    mean: float
    low: float = Field(description="of the lowest seed")
    high: float = Field(description="of the highest seed")
    seeds: int


class ComparedRead(Output):
    """A run beside the first one."""

    run: RunSummary
    points: list[PointRead] = Field(description="its curve; long ones are thinned, the last epoch stays")
    by_images: DifferenceRead | None = Field(
        description="other images of the same kind might change it so far"
    )
    by_seeds: DifferenceRead | None = Field(description="other seeds might; null without two seeds of each")
    labels: LabelDifferenceRead | None = Field(
        description="null where they are about other images or classes, or a file of them is missing"
    )
    label_snapshot: str = Field(description="SHA-256 of the frozen labels")


class SettingDifference(Output):
    """A value of the configuration that is not the same in all runs."""

    name: str
    values: list[Any] = Field(description="in the order of the runs; null where one has none")


class ComparisonRead(Output):
    """Runs in the order that was asked for; they are compared with the first."""

    items: list[ComparedRead]
    settings: list[SettingDifference]

    @classmethod
    def of(cls, found: Comparison) -> Self:
        """From runs that were put side by side."""
        return cls(
            items=[
                ComparedRead(
                    run=RunSummary.of(each.run, each.summary),
                    points=each.points,
                    by_images=each.by_images,
                    by_seeds=each.by_seeds,
                    labels=each.labels,
                    label_snapshot=each.run.snapshot_digest,
                )
                for each in found.runs
            ],
            settings=[SettingDifference(name=name, values=values) for name, values in found.settings],
        )


class SweepRead(Output):
    """Runs that were launched together; `GET /runs?sweep_id=` lists them later."""

    sweep_id: UUID
    items: list[RunSummary]
