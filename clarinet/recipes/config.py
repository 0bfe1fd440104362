"""The configuration of a run: groups of hyper-parameters under the name of a method. Never imports torch."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, Self

from clarinet.recipes import groups, learning, rules
from clarinet.recipes.choices import Method, Preset, Setting
from clarinet.recipes.errors import ConfigError
from clarinet.recipes.fields import check_fields, kinds_of, required
from clarinet.recipes.identity import check_identity, check_name
from clarinet.recipes.upgrade import CONSTANT, OWN, RENAMED, upgraded

LARGEST_SEED = 2**53 - 1  # the largest integer that every JSON reader keeps exact


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainConfig:
    """Everything that decides a run besides its data.

    `config_for` makes one by the recipe of a method. What makes a method that method cannot be changed under
    its name: the kind of adaptation, the number of steps, whether complementary labels are used.

    Raises:
        ConfigError: a value has the wrong type, is out of bounds or is none of its choices; or values do not
            go together, or not with the method.
    """

    method: Method = required("The method: one of the paper's, or our stronger clarinet-plus.")
    preset: Preset = required("The named set of values from which this configuration started.")
    setting: Setting = required(
        "Whether only complementary labels (cc) or true labels as well (pc) are used."
    )
    seed: int = required("The root of all randomness of one trial.", minimum=0, maximum=LARGEST_SEED)

    length: groups.Length = field(default_factory=groups.Length)
    network: groups.Network = field(default_factory=groups.Network)
    optimisation: groups.Optimisation = field(default_factory=groups.Optimisation)
    losses: learning.Losses = field(default_factory=learning.Losses)
    adaptation: learning.Adaptation = field(default_factory=learning.Adaptation)
    distortion: learning.Distortion = field(default_factory=learning.Distortion)
    pretraining: learning.Pretraining = field(default_factory=learning.Pretraining)
    self_training: learning.SelfTraining = field(default_factory=learning.SelfTraining)
    reports: groups.Reports = field(default_factory=groups.Reports)

    def __post_init__(self) -> None:
        check_fields(self)
        check_identity(self.method, self.length, self.losses, self.adaptation)
        rules.check_network(self.network)
        rules.check_kept_features(self.method, self.network, self.losses, self.distortion, self.pretraining)
        rules.check_fine_tuning(self.length, self.network, self.self_training)
        rules.check_distortion(self.distortion)
        rules.check_lengths(self.length, self.pretraining)
        rules.check_adaptation(self.length, self.optimisation, self.adaptation)
        rules.check_labels(self.method, self.setting, self.losses)
        values = {name: value for name, value in self.flat().items() if name not in OWN}
        check_name(self.method, self.preset, values, DEFAULTS)

    @property
    def pretraining_epochs(self) -> int:
        """How many of the epochs learn without labels; 0 where the run is too short for one."""
        return self.pretraining.epochs_of(self.length.epochs)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values: the four of its own, then each group's by the name of the group."""
        return asdict(self)

    def flat(self) -> dict[str, Any]:
        """Every value by its name, whatever its group."""
        found = {name: getattr(self, name) for name in OWN}
        for name in GROUPS:
            found |= asdict(getattr(self, name))
        return found

    def changed(self, **values: Any) -> Self:
        """The same configuration with single values replaced, by their names.

        Raises:
            ConfigError: a name is unknown, or a value is refused.
        """
        return type(self)(**grouped(self.flat() | values))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Rebuild from `to_dict`, from `flat`, or from what earlier versions wrote.

        Absent values take their default; method, preset, setting and seed must be there.

        Raises:
            ConfigError: a name is unknown or missing, or a value is refused.
        """
        flat = flattened(values)
        for name in OWN:
            if name not in flat:
                raise ConfigError(f"{name} is missing; config_for(METHOD) gives a whole configuration", name)
        return cls(**grouped(flat))


GROUPS: Mapping[str, type] = MappingProxyType(
    {item.name: kinds_of(TrainConfig)[item.name] for item in fields(TrainConfig) if item.name not in OWN}
)
"""Name of a group to its class, in the order in which people read them."""

GROUP_OF: Mapping[str, str] = MappingProxyType(
    {item.name: name for name, group in GROUPS.items() for item in fields(group)}
)
"""Name of a hyper-parameter to its group."""

DEFAULTS: Mapping[str, Any] = MappingProxyType(
    {item.name: item.default for group in GROUPS.values() for item in fields(group)}
)
"""Name of a hyper-parameter to its default, that of `clarinet` with preset `paper`."""


def title_of(name: str) -> str:
    """A group or a hyper-parameter in words: "self_training" is "Self training"."""
    return name.replace("_", " ").capitalize()


def flattened(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values by their names of today, whatever version wrote them; some may be missing."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if name in GROUPS and isinstance(value, Mapping):
            flat |= value
        else:
            flat[name] = value
    return upgraded(flat)


def grouped(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Values by name as the fields of a TrainConfig.

    Raises:
        ConfigError: a name is unknown, or a value is refused.
    """
    found: dict[str, Any] = {name: flat[name] for name in OWN if name in flat}
    by_group: dict[str, dict[str, Any]] = {name: {} for name in GROUPS}
    for name, value in flat.items():
        if name in GROUP_OF:
            by_group[GROUP_OF[name]][name] = value
        elif name not in OWN:
            raise unknown(name)
    return found | {name: GROUPS[name](**own) for name, own in by_group.items()}


def unknown(name: str) -> ConfigError:
    """What to say about a name that no hyper-parameter has: its name of today, or those most like it."""
    if name in CONSTANT:
        return ConfigError(f"{name} cannot be chosen; it is always {CONSTANT[name]!r} in this version", name)
    if name in RENAMED:
        return ConfigError(f"{name} is called {RENAMED[name]} now", name)
    near = get_close_matches(name, GROUP_OF)
    told = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(sorted(GROUP_OF))}"
    return ConfigError(f"unknown hyper-parameter {name!r}; {told}", name)
