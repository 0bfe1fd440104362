"""What to do next with a run that has ended, in words. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from app.runs.beside import SOURCE_ALONE, Beside
from app.runs.models import Run, TrialState
from app.runs.shares import has_collapsed
from app.runs.summary import Summary
from app.runs.words import counted
from clarinet.recipes.binomial import trials_needed

ASKING = "new_evaluation"  # the route where people are asked about predictions; run_id is in its path
NEAR, ROUGH = 0.02, 0.05  # how near an accuracy should be known: within two points, or at least five
SEEDS = 3  # from as many on a spread says something


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to do: what and why, and a link: its words, the route and its path, its query."""

    words: str
    action: str = ""
    route: str = ""
    path: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)


def next_steps(run: Run, summary: Summary, beside: Beside, *, images: int) -> list[Step]:
    """The most useful first; none before the run has ended, and where no seed ended well.

    Args:
        run: with its trials.
        summary: its figures.
        beside: what they are compared with.
        images: how many the target has.
    """
    if not run.is_finished or not any(trial.state is TrialState.SUCCEEDED for trial in run.trials):
        return []
    if summary.is_guessing:
        return [*_asking(run, summary, images), *_what_may_be_wrong(run, beside)]
    steps = _asking(run, summary, images)
    campaign = {"campaign_id": str(run.campaign_id)}
    target = {"target_dataset_id": str(run.target_dataset_id), "setting": run.setting}
    if summary.mean is not None and run.method != SOURCE_ALONE and beside.source_alone is None:
        recipe = {"recipe": f"{SOURCE_ALONE}/default"}
        words = "Train from the source alone: only beside it one sees what the adaptation is worth."
        steps.append(Step(words, "Start it", "new_run", campaign, recipe | target))
    if len(run.trials) < SEEDS:
        words = f"Train {SEEDS} seeds or more: they show how much of the result is chance."
        recipe = {"recipe": f"{run.method}/{run.preset}"}
        steps.append(Step(words, "Start them", "new_run", campaign, recipe | target))
    words = "Try the model on pictures of your own, or download it."
    steps.append(Step(words, "Its models", "list_models", query={"run_id": str(run.id)}))
    return steps


def _what_may_be_wrong(run: Run, beside: Beside) -> list[Step]:
    """In the place of its use, where its accuracy cannot be told from guessing."""
    facts, campaign = run.snapshot_facts, {"campaign_id": str(run.campaign_id)}
    steps = []
    ended_well = [trial for trial in run.trials if trial.state is TrialState.SUCCEEDED]
    if collapsed := [trial for trial in ended_well if trial.result and has_collapsed(trial.result)]:
        words = (
            "It may have collapsed: it takes nearly every picture for one class. Look at its pictures, and "
            "train other seeds, or by another method."
        )
        steps.append(Step(words, "Its pictures", "show_pictures", {"trial_id": str(collapsed[0].id)}))
    labels = sum(facts["complementary"]) + (sum(facts["true"]) if run.setting == "pc" else 0)
    each = labels // len(facts["classes"])
    words = (
        f"It may have too few labels: it learnt from {counted(labels)}, about {counted(each)} for each "
        "class. Ask further questions."
    )
    steps.append(Step(words, "The campaign", "show_campaign", campaign))
    words = (
        "The domains may lie too far apart: on its map, the pictures of the target then lie beside those of "
        "the source, and not among them."
    )
    steps.append(Step(words, "Its map", "show_map", {"trial_id": str(ended_well[0].id)}))
    if run.method != SOURCE_ALONE and beside.source_alone is None:
        words = "Train from the source alone: it tells whether the adaptation does harm."
        query = {"target_dataset_id": str(run.target_dataset_id), "setting": run.setting}
        query["recipe"] = f"{SOURCE_ALONE}/default"
        steps.append(Step(words, "Start it", "new_run", campaign, query))
    return steps


def _asking(run: Run, summary: Summary, images: int) -> list[Step]:
    """Ask people where nothing measures the accuracy, or too few images do."""
    if summary.people is not None:
        return []
    link = ("Ask people", ASKING, {"run_id": str(run.id)})
    if summary.mean is None or summary.low is None or summary.high is None:
        if summary.scored.images:
            return []
        wanted = [
            f"{counted(asked)} pictures tell it within {100 * width:.0f} points"
            for width in (ROUGH, NEAR)
            if (asked := trials_needed(width)) <= images
        ]
        told = "; ".join(wanted) or f"the target has {counted(images)} pictures"
        return [Step(f"Ask people whether its predictions are right: {told}.", *link)]
    width = max(summary.mean - summary.low, summary.high - summary.mean)
    asked = trials_needed(NEAR, summary.mean)
    if width <= NEAR or asked > images:
        return []
    words = (
        f"Ask people about {counted(asked)} pictures to know the accuracy within {100 * NEAR:.0f} points; "
        f"the {counted(summary.scored.images)} that score now tell it within {100 * width:.0f}."
    )
    return [Step(words, *link)]
