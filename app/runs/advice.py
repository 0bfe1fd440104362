"""What to do next with a run that has ended, in words. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from app.runs.beside import SOURCE_ALONE, Beside
from app.runs.models import Run, TrialState
from app.runs.summary import Summary
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
    steps = _asking(run, summary, images)
    campaign = {"campaign_id": str(run.campaign_id)}
    target = {"target_dataset_id": str(run.target_dataset_id)}
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


def _asking(run: Run, summary: Summary, images: int) -> list[Step]:
    """Ask people where nothing measures the accuracy, or too few images do."""
    if summary.people is not None:
        return []
    link = ("Ask people", ASKING, {"run_id": str(run.id)})
    if summary.mean is None or summary.low is None or summary.high is None:
        if summary.scored.images:
            return []
        wanted = [
            f"{_count(asked)} pictures tell it within {100 * width:.0f} points"
            for width in (ROUGH, NEAR)
            if (asked := trials_needed(width)) <= images
        ]
        told = "; ".join(wanted) or f"the target has {_count(images)} pictures"
        return [Step(f"Ask people whether its predictions are right: {told}.", *link)]
    width = max(summary.mean - summary.low, summary.high - summary.mean)
    asked = trials_needed(NEAR, summary.mean)
    if width <= NEAR or asked > images:
        return []
    words = (
        f"Ask people about {_count(asked)} pictures to know the accuracy within {100 * NEAR:.0f} points; the "
        f"{_count(summary.scored.images)} that score now tell it within {100 * width:.0f}."
    )
    return [Step(words, *link)]


def _count(number: int) -> str:
    return f"{number:,}".replace(",", " ")
