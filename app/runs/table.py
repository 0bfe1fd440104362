"""The columns of the table of runs: what each shows of a run, for the page and for a file. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from app.runs import configs
from app.runs.models import Run, last_metric_of
from app.runs.summary import Summary
from clarinet.files.tables import guarded
from clarinet.recipes.config import flattened, title_of


@dataclass(frozen=True, slots=True)
class Column:
    """A column; `kind` says how the page writes it: accuracy, percent, count, duration, state, ago, text."""

    key: str
    title: str
    kind: str
    value: Callable[[Run, Summary], Any]

    @property
    def is_number(self) -> bool:
        """Whether it is aligned as a figure."""
        return self.kind in {"accuracy", "percent", "count", "duration"}


def _trained(run: Run, _: Summary) -> float | None:
    seconds = [metric.seconds for trial in run.trials if (metric := last_metric_of(trial)) is not None]
    return sum(seconds) if seconds else None


COLUMNS = (
    Column(
        "accuracy",
        "On the target",
        "accuracy",
        lambda _, summary: summary.people.interval.estimate if summary.people else summary.mean,
    ),
    Column("low", "Interval from", "percent", lambda _, summary: summary.low),
    Column("high", "Interval to", "percent", lambda _, summary: summary.high),
    Column("spread", "Deviation over seeds", "percent", lambda _, summary: summary.spread),
    Column("state", "State", "state", lambda run, _: run.state),
    Column("method", "Method", "text", lambda run, _: run.method),
    Column("preset", "Preset", "text", lambda run, _: run.preset),
    Column("setting", "Learns from", "text", lambda run, _: run.setting.upper()),
    Column("seeds", "Seeds", "count", lambda run, _: len(run.trials)),
    Column(
        "complementary", "“It is not this”", "count", lambda run, _: sum(run.snapshot_facts["complementary"])
    ),
    Column("true", "“It is this”", "count", lambda run, _: sum(run.snapshot_facts["true"])),
    Column("answers", "Answers", "count", lambda run, _: run.snapshot_facts["answers"]),
    Column("labels", "Frozen labels", "text", lambda run, _: run.snapshot_digest[:8]),
    Column(
        "source",
        "Estimated on the source",
        "percent",
        lambda _, summary: summary.source and summary.source.estimate,
    ),
    Column("epochs", "Epochs done", "count", lambda _, summary: summary.epoch),
    Column("trained", "Trained for", "duration", _trained),
    Column("started", "Started", "ago", lambda run, _: run.created_at),
    Column("tags", "Tags", "text", lambda run, _: ", ".join(run.tags)),
    Column("note", "Note", "text", lambda run, _: run.note),
)
USUAL = ("accuracy", "state", "method", "preset", "setting", "seeds", "started", "tags", "note")


def hyper_parameters() -> list[tuple[str, str]]:
    """Key and title of a column for each hyper-parameter."""
    return [(field.name, field.title) for field in configs.form_fields()]


def columns_of(asked: Sequence[str]) -> list[Column]:
    """The columns of these keys, in the table's own order; the usual ones where none is known."""
    wanted = set(asked)
    found = [column for column in COLUMNS if column.key in wanted]
    names = [field.name for field in configs.form_fields() if field.name in wanted]
    found += [Column(name, title_of(name), "text", _setting(name)) for name in names]
    return found or [column for column in COLUMNS if column.key in USUAL]


def _setting(name: str) -> Callable[[Run, Summary], Any]:
    def value(run: Run, _: Summary) -> str:
        values = flattened(run.config)
        return configs.shown(values[name]) if name in values else ""

    return value


def as_rows(
    runs: Sequence[Run],
    summaries: Mapping[UUID, Summary],
    names: Mapping[UUID, str],
    columns: Sequence[Column],
) -> list[list[str]]:
    """A table for a file: a header, then a row for each run."""
    head = ["number", "name", "campaign", "target", *(column.key for column in columns)]
    rows = [
        [
            str(run.number),
            guarded(run.name),
            guarded(names[run.campaign_id]),
            guarded(names[run.target_dataset_id]),
            *(_written(column.value(run, summaries[run.id])) for column in columns),
        ]
        for run in runs
    ]
    return [head, *rows]


def _written(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.isoformat()
    return guarded(value) if isinstance(value, str) else str(value)
