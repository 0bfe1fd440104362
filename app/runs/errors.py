"""What can go wrong with runs."""

from collections.abc import Sequence
from pathlib import Path

from app.errors import Conflict, NotFound, TooMany, Unprocessable, Uses
from clarinet.recipes.counting import many
from clarinet.recipes.overlap import Overlap


class RunNotFound(NotFound):
    """No such run."""

    title = "Run not found"

    def __init__(self) -> None:
        super().__init__("There is no such run.")


class RunNotOver(Conflict):
    """A run that waits or trains cannot be deleted."""

    title = "Run is not over"

    def __init__(self, number: int) -> None:
        super().__init__(f"Run {number} is not over. Nothing was changed; cancel it first.")


class RunInUse(Conflict):
    """Something needs this run, or a model of it."""

    title = "Run in use"

    def __init__(self, number: int, used_by: Uses) -> None:
        super().__init__(
            f"Run {number} cannot be deleted. It is needed by {used_by.in_words or 'something else'}. "
            "Nothing was changed; delete these, or move the aliases of its models to others, first.",
            used_by=used_by,
        )


class TooFewLabels(Unprocessable):
    """The campaign has not been asked enough yet."""

    title = "Too few labels"

    def __init__(self, *, have: int, need: int, kind: str = "complementary") -> None:
        super().__init__(
            f"{many(need - have, 'more answer')} until a run can start: it needs "
            f"{many(need, f'{kind} label')} and the campaign has {have:,}.",
            have=have,
            need=need,
        )


class CampaignNotOpened(Conflict):
    """No question of the campaign has been drawn yet."""

    title = "Campaign not opened"

    def __init__(self) -> None:
        super().__init__(
            "Open the campaign and have some questions answered first; a run learns from answers."
        )


class TargetNotReady(Conflict):
    """The target dataset is not imported, or its import failed."""

    title = "Target dataset not ready"

    def __init__(self, name: str, state: str) -> None:
        super().__init__(f'The target dataset "{name}" is {state}; a run needs one that is ready.')


class TargetWithoutImages(Unprocessable):
    """There is nothing to adapt to."""

    title = "Target without training images"

    def __init__(self, name: str) -> None:
        super().__init__(f'The target dataset "{name}" has no images in its train split to adapt to.')


class TargetIsSource(Unprocessable):
    """Most of the target's images are those that people are asked about."""

    title = "Target is the source"

    def __init__(self, name: str, overlap: Overlap) -> None:
        super().__init__(
            f'The target dataset "{name}" has images that the campaign asks about: {overlap.in_words}. A run '
            "adapts to other images; choose another dataset.",
            shared=overlap.shared,
            images=overlap.images,
        )


class NoSharedClass(Unprocessable):
    """Both name their classes, and none is in both."""

    title = "No class in common"

    def __init__(self, name: str, asked: Sequence[str], known: Sequence[str]) -> None:
        super().__init__(
            f'The campaign asks about {_listed(asked)}, and the target dataset "{name}" has {_listed(known)}'
            ": none in common. Choose another dataset, or name its folders as the campaign names its classes."
        )


class OneClassAlone(Unprocessable):
    """All labels of a kind name the same class, which one answer for all images satisfies."""

    title = "Labels of one class alone"

    def __init__(self, message: str) -> None:
        super().__init__(message)


class BadSeeds(Unprocessable):
    """Too many, too few, doubled or negative seeds."""

    title = "Seeds refused"


class BadConfig(Unprocessable):
    """A hyper-parameter has an unknown name or a value outside its bounds."""

    title = "Configuration refused"

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message, field=field)
        self.field = field


class NothingFailed(Conflict):
    """None of the trials that should be tried again has failed."""

    title = "Nothing failed"

    def __init__(self, number: int) -> None:
        super().__init__(
            f"None of these trials of run {number} has failed, so there is nothing to try again."
        )


class TooManyToCompare(Unprocessable):
    """More runs than anybody could read side by side."""

    title = "Too many runs to compare"

    def __init__(self, asked: int, most: int) -> None:
        super().__init__(f"At most {most} runs can be compared at once, not {asked}. Mark fewer.", most=most)


class BadSweep(Unprocessable):
    """Runs that cannot be launched together."""

    title = "Sweep refused"


class RunIsOver(Conflict):
    """A run that has ended, or is being cancelled, cannot be steered any more."""

    title = "Run is over"

    def __init__(self, number: int, state: str) -> None:
        super().__init__(f"Run {number} is over already: it has {state}.")


class WeightsFolderUnusable(Conflict):
    """The operator named a folder of trained weights that the server cannot list."""

    title = "Folder of weights unusable"

    def __init__(self, folder: Path, reason: str) -> None:
        super().__init__(
            f'The folder for trained weights, "{folder}", {reason}. Make it and let the server read it, or '
            "set CLARINET_WEIGHTS_DIR to another and start the server again."
        )


class BadSince(Unprocessable):
    """What a program gave as the last event that it has is the id of no event of this run."""

    title = "Unknown event"

    def __init__(self, since: str, seeds: int) -> None:
        super().__init__(
            f'"{since[:LONGEST_SHOWN]}" is the id of no event of this run. Give one as the stream sent it, '
            f"such as {'-'.join('3' * seeds)}, or leave it out.",
            field="since",
        )


class TooManyStreams(TooMany):
    """More pages follow runs than this server can serve at once."""

    title = "Too many live pages"

    def __init__(self) -> None:
        super().__init__(
            "Too many pages follow runs at this moment; reload to see the present state.", retry_after_s=5
        )


LONGEST_SHOWN = 40  # of what somebody gave
MOST_LISTED = 6  # names in a sentence


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_LISTED} more" if len(names) > MOST_LISTED else ""
    return ", ".join(names[:MOST_LISTED]) + more
