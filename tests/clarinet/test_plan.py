"""Which trials `clarinet reproduce` plans: the paper's tables, or methods by settings and label numbers."""

import pytest

from clarinet.recipes.errors import ConfigError
from clarinet.recipes.presets import METHODS
from clarinet.reproduction.paper import ABLATION, CC, TRUE_ONLY
from clarinet.reproduction.tasks import TASKS
from clarinet.reproduction.trials import plan, plan_tables


def test_the_papers_tables_have_a_trial_for_each_number_of_theirs() -> None:
    trials = plan_tables(["U->M", "S->M"], seeds=[0])

    by_method = {(t.task, t.method) for t in trials if t.setting == "cc"}
    assert by_method >= {key for key in (*CC, *ABLATION) if key[0] in {"U->M", "S->M"}}
    numbers = {(t.task, t.true_labels) for t in trials if t.method == "clarinet" and t.setting == "pc"}
    printed = {key for key in TRUE_ONLY if key[0] in {"U->M", "S->M"}}
    assert numbers == printed == {(t.task, t.true_labels) for t in trials if t.method == "cdan_e"}
    assert len(trials) == len(set(trials)) == 2 * (9 + 15)


def test_zero_true_labels_is_the_cc_setting_and_comes_once() -> None:
    trials = plan(
        ["U->M"], ["clarinet-plus"], settings=["cc", "pc"], true_counts=[0, 200, 1000], seeds=range(2)
    )

    assert [(t.setting, t.true_labels, t.seed) for t in trials] == [
        (setting, number, seed)
        for seed in (0, 1)
        for setting, number in (("cc", 0), ("pc", 200), ("pc", 1000))
    ]


def test_methods_of_true_labels_alone_wait_for_pc() -> None:
    trials = plan(["U->M"], ["clarinet", "dann"], settings=["cc", "pc"], seeds=[0])

    assert [(t.method, t.setting) for t in trials] == [
        ("clarinet", "cc"),
        ("clarinet", "pc"),
        ("dann", "pc"),
    ]
    with pytest.raises(ConfigError, match="add --setting pc"):
        plan(["U->M"], ["dann"], settings=["cc"])


def test_a_preset_is_for_the_methods_that_have_it() -> None:
    trials = plan(["U->M"], ["clarinet", "clarinet-plus"], preset="quick", seeds=[0])

    assert [(t.method, t.preset) for t in trials] == [
        ("clarinet", "paper"),
        ("clarinet-plus", "digits-quick"),
    ]


@pytest.mark.parametrize("task", ["C->T", "P->p", "photo->sketch"])
def test_our_method_trains_photographs_on_tasks_of_photographs(task: str) -> None:
    """The paper's methods keep the paper's network; who names a preset has it."""
    methods = ["clarinet", "clarinet-plus", "clarinet-plus:digits"]

    presets = [trial.preset for trial in plan([task], methods, seeds=[0])]

    assert presets == ["paper", "photographs", "digits"]
    assert [trial.preset for trial in plan([task], methods, preset="quick", seeds=[0])] == [
        "paper",
        "photographs-quick",
        "digits",
    ]


def test_a_preset_on_kept_features_has_the_network_that_they_are_of() -> None:
    methods = ["gac:photographs-quick", "gac+dan:photographs-quick", "gac:photographs"]

    networks = [trial.config().network for trial in plan(["photo->sketch"], methods, seeds=[0])]

    kept, lite0 = METHODS["clarinet-plus"]["photographs-quick"], "timm/tf_efficientnet_lite0"
    assert [network.architecture for network in networks] == [lite0, lite0, "resnet18"]
    assert [network.image_size for network in networks] == [kept["image_size"], kept["image_size"], 96]


def test_our_method_takes_the_network_that_fits_the_images() -> None:
    (ours,) = plan(["Y->S"], ["clarinet-plus"], seeds=[0])

    assert ours.config().network.architecture == "auto"


@pytest.mark.parametrize(
    ("task", "network"),
    [
        ("C->T", ("conv-large", 32)),
        ("U->M", ("lenet", 28)),
        ("M->U", ("lenet", 28)),
        ("S->M", ("dtn", 32)),
        ("M->m", ("dann", 28)),
        ("Y->M", ("dtn", 32)),
        ("Y->S", ("dtn", 32)),
    ],
)
def test_each_task_has_the_papers_network(task: str, network: tuple[str, int]) -> None:
    for trial in plan([task], ["clarinet", "gac", "gac+dan"], seeds=[0]):
        chosen = trial.config().network
        assert (chosen.architecture, chosen.image_size) == network


def test_every_task_has_a_network_that_fits() -> None:
    assert len(plan(list(TASKS), ["clarinet", "clarinet-plus"], seeds=[0])) == 2 * len(TASKS)


def test_a_method_of_true_labels_alone_is_left_out_of_cc_whoever_it_is_by() -> None:
    trials = plan(["U->M"], ["clarinet", "mcc"], settings=["cc", "pc"], seeds=[0])

    assert [(t.method, t.setting) for t in trials] == [("clarinet", "cc"), ("clarinet", "pc"), ("mcc", "pc")]
