"""Records of finished trials, joined over the seeds of what is otherwise the same."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from clarinet.recipes.config import TrainConfig
from clarinet.recipes.errors import ConfigError
from clarinet.reproduction.tasks import TASKS
from clarinet.reproduction.trials import Trial

DOMAINS = ("source", "target")
Record = dict[str, Any]  # what `results.read_records` returns


@dataclass(frozen=True, slots=True)
class Group:
    """Trials that differ in their seed alone.

    Args:
        trial: one of them.
        records: all, by seed.
        older: results under the same names but of other data or hyper-parameters, which are left out.
    """

    trial: Trial
    records: tuple[Record, ...]
    older: int

    @property
    def accuracies(self) -> list[float]:
        """Accuracies on the target in %, of the trials that ended."""
        known = [record["result"]["target_accuracy"] for record in self.records if "result" in record]
        return [100 * accuracy for accuracy in known if accuracy is not None]

    @property
    def is_regenerated(self) -> bool:
        """Whether images were made anew after a published recipe, for want of the published ones."""
        return any("regenerated" in record["data"][part] for record in self.records for part in DOMAINS)

    @property
    def config(self) -> TrainConfig | None:
        """The one that its trials would have today; None where earlier versions alone allowed its changes."""
        try:
            return self.trial.config()
        except ConfigError:
            return None

    @property
    def was_preset(self) -> dict[str, Any]:
        """Fields in which the preset was another one when the trials were made, with their values of then."""
        then, now = self.records[0]["config"], self.config.flat() if self.config else {}
        return {name: was for name in now if (was := then.get(name)) != now[name]}

    @property
    def untold(self) -> dict[str, Any]:
        """Changes of the trials that their command does not name, as it is of a time before these fields."""
        found: dict[str, Any] = self.records[0].get("untold", {})
        return found

    @property
    def failures(self) -> int:
        """Trials whose loss diverged."""
        return sum("failure" in record for record in self.records)


def grouped(records: Iterable[Record]) -> list[Group]:
    """Join the seeds of what is otherwise the same, in the order of the paper's tasks.

    Where data or hyper-parameters changed between runs, the newest ones count.
    """
    kinds: dict[tuple[Any, ...], dict[str, list[Record]]] = {}
    for record in records:
        trial = Trial.from_dict(record["trial"])
        kind = (*(value for name, value in record["trial"].items() if name not in {"seed", "changes"}),)
        same = {name: value for name, value in record["config"].items() if name != "seed"}
        version = repr((sorted(same.items()), record["data"]["digest"]))
        kinds.setdefault((*kind, trial.changes), {}).setdefault(version, []).append(record)
    groups = []
    for versions in kinds.values():
        newest = max(versions.values(), key=lambda found: max(record["finished_at"] for record in found))
        older = sum(len(found) for found in versions.values()) - len(newest)
        by_seed = tuple(sorted(newest, key=lambda record: record["trial"]["seed"]))
        groups.append(Group(Trial.from_dict(by_seed[0]["trial"]), by_seed, older))
    places = {name: place for place, name in enumerate(TASKS)}
    return sorted(groups, key=lambda group: (places[group.trial.task], *_order(group.trial)))


def _order(trial: Trial) -> tuple[Any, ...]:
    return (trial.true_labels, trial.answers, trial.label_noise, trial.method, trial.preset, trial.changes)


def named_preset(trial: Trial) -> str:
    """The preset, and what was changed in it as `--set` writes it."""
    return ", ".join([trial.preset, *(f"{name}={value}" for name, value in trial.changes)])


def setting_of(trial: Trial) -> str:
    """The setting and its labels in a few words."""
    parts = [trial.setting + (f", {trial.true_labels} true" if trial.setting == "pc" else "")]
    parts += [f"{trial.answers} answers"] if trial.answers else []
    parts += [f"{100 * trial.label_noise:g} % wrong"] if trial.label_noise else []
    return ", ".join(parts)
