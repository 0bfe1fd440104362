"""What one trial of the reproduction is: the key that tells it from all others, and the plan of many."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b
from itertools import product
from typing import Any

from clarinet.recipes.choices import Looks, Setting
from clarinet.recipes.config import TrainConfig
from clarinet.recipes.errors import ConfigError
from clarinet.recipes.fitting import ASKED, preset_for
from clarinet.recipes.identity import IDENTITIES
from clarinet.recipes.methods import config_for
from clarinet.recipes.presets import METHODS
from clarinet.reproduction.tasks import TASKS, TaskData

TRUE_ONLY_METHODS = frozenset({"dan", "dann", "cdan_e"})  # of the paper: ordinary adaptation from true labels
OWN_METHOD = "clarinet-plus"  # chooses its network by the images' shape, never by the task
BY_METHOD = ("clarinet", "gac", "gac+dan", "gac+dann", "gac+cdan_e", OWN_METHOD)
ABLATIONS = ("clarinet-ce", "clarinet-unconditioned", "clarinet-unsharpened")
BY_TRUE_LABELS, TRUE_LABELS = ("clarinet", "cdan_e", OWN_METHOD), (200, 400, 600, 800, 1000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One training: the key under which its result is stored.

    Args:
        task: the paper's name.
        method, preset: see METHODS.
        setting: cc or pc.
        true_labels: true labels of the pc setting; 0 in cc.
        answers: so many source images have a label; 0 means all.
        label_noise: share of complementary labels that are wrong.
        seed: of the labels, the weights and the batches.
        changes: fields of TrainConfig that depart from the preset, by name.
    """

    task: str
    method: str
    preset: str
    setting: Setting
    true_labels: int
    answers: int
    label_noise: float
    seed: int
    changes: tuple[tuple[str, Any], ...] = ()

    def config(self) -> TrainConfig:
        """Its hyper-parameters: the preset, the task's network unless the preset has its own, the changes."""
        has_own = self.method == OWN_METHOD or "bottleneck" in METHODS[self.method].get(self.preset, {})
        network = {} if has_own else TASKS[self.task].network
        fixed = {"setting": self.setting, "seed": self.seed}
        return config_for(self.method, self.preset, **{**network, **dict(self.changes), **fixed})

    def to_dict(self) -> dict[str, Any]:
        """Field names to plain JSON values."""
        return asdict(self) | {"changes": dict(self.changes)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Trial":
        """Rebuild from `to_dict`."""
        return cls(**values | {"changes": tuple(sorted(values["changes"].items()))})

    def stem(self, data: TaskData) -> str:
        """Its name, as `named` gives it for its own config and the images of its task."""
        return self.named(self.config().flat(), data.digest)

    def named(self, config: Mapping[str, Any], data_digest: str) -> str:
        """A name that says what it is, with a digest of config and data that tells the rest.

        A file name, and the key under which a finished trial is found again.
        """
        content = json.dumps([self.to_dict(), dict(config), data_digest], sort_keys=True)
        digest = blake2b(content.encode(), digest_size=4).hexdigest()
        parts = [self.task.replace(">", ""), self.method, self.preset, self.setting]
        parts += [f"true{self.true_labels}"] if self.setting == "pc" else []
        parts += [f"answers{self.answers}"] if self.answers else []
        parts += [f"noise{self.label_noise:g}"] if self.label_noise else []
        return "_".join([*parts, f"seed{self.seed}", digest])


def plan(
    tasks: Sequence[str],
    methods: Sequence[str],
    *,
    preset: str | None = None,
    settings: Sequence[Setting] = ("cc",),
    true_counts: Sequence[int] = (1000,),
    answers: Sequence[int] = (0,),
    label_noise: Sequence[float] = (0.0,),
    seeds: Iterable[int] = range(5),
    changes: dict[str, Any] | None = None,
) -> list[Trial]:
    """All trials that were asked for, tasks apart, and in each all methods of a seed before the next seed.

    Args:
        tasks: the paper's names.
        methods: names of METHODS, each followed by a colon and a preset if it is to have its own.
        preset: of the methods that know it and name no own; the others take their first, `clarinet-plus` the
            one that fits the images of the task.
        settings: cc, pc or both.
        true_counts: true labels in pc; 0 is the cc setting.
        answers, label_noise, seeds: see Trial.
        changes: fields of TrainConfig to change in all of them.

    Raises:
        ConfigError: an unknown method, a preset that none of them has, a refused value, or nothing to do.
    """
    for name in methods:
        _require_known(name)
    if preset is not None and not any(_has(name, preset) for name in methods):
        raise ConfigError(f"none of {', '.join(methods)} has a preset {preset!r}")
    counts: list[tuple[Setting, int]] = [("cc", 0)] if "cc" in settings else []
    if "pc" in settings:
        counts += [("pc" if count else "cc", count) for count in true_counts]
    changed = tuple(sorted((changes or {}).items()))
    trials = [
        Trial(
            task=task,
            method=_method_of(name),
            preset=_preset(name, preset, TASKS[task].looks),
            setting=setting,
            true_labels=count,
            answers=answered,
            label_noise=noise,
            seed=seed,
            changes=changed,
        )
        for task, seed, (setting, count), answered, noise, name in product(
            tasks, list(seeds), counts, answers, label_noise, methods
        )
        if setting == "pc" or IDENTITIES[_method_of(name)].learns != "truth"
    ]
    if not trials:
        raise ConfigError(
            f"nothing to do: {', '.join(methods)} learn from true labels alone; add --setting pc"
        )
    for trial in trials:
        trial.config()  # a mistake in the last one should not show after days
    return list(dict.fromkeys(trials))


def plan_tables(
    tasks: Sequence[str],
    *,
    preset: str | None = None,
    seeds: Iterable[int] = range(5),
    changes: dict[str, Any] | None = None,
) -> list[Trial]:
    """The trials of the paper's three tables, with our own method beside the paper's; arguments as in `plan`.

    The paper does not name the method of its column of true labels alone; here it is cdan_e.
    """
    seeds = list(seeds)
    by_method = plan(tasks, [*BY_METHOD, *ABLATIONS], preset=preset, seeds=seeds, changes=changes)
    by_true_labels = plan(
        tasks,
        BY_TRUE_LABELS,
        preset=preset,
        settings=["pc"],
        true_counts=TRUE_LABELS,
        seeds=seeds,
        changes=changes,
    )
    return by_method + by_true_labels


def _method_of(name: str) -> str:
    """The method of METHOD or METHOD:PRESET."""
    return name.partition(":")[0]


def _require_known(name: str) -> None:
    if _method_of(name) not in METHODS:
        raise ConfigError(f"unknown method {_method_of(name)!r}; known ones are {', '.join(METHODS)}")


def _has(name: str, preset: str) -> bool:
    """Whether a method that names no preset of its own knows this one."""
    method, _, own = name.partition(":")
    return not own and (preset in METHODS[method] or (method == OWN_METHOD and preset in ASKED))


def _preset(name: str, preset: str | None, looks: Looks) -> str:
    """The paper's methods take their first, as the paper's tasks name the network; ours by the images."""
    method, _, own = name.partition(":")
    asked = own or (preset if preset is not None and _has(name, preset) else None)
    return preset_for(method, asked, looks if method == OWN_METHOD else None)
