"""What an annotator's minutes buy: accuracy by minutes, of yes/no questions and of ordinary labelling. Pure.

The curves are measured: of two tasks by a study, whose answers a program gave without an error, and of a
campaign by its own runs. Seconds turn their answers into minutes. Nothing is drawn beyond what was measured.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from app.planning.studied import STUDIED, Studied

WAYS = {
    "uniform-card": "Yes/no, one picture at a time",
    "uniform-page": "Yes/no, a page of pictures",
    "again": "Yes/no by the model's belief, pictures with a no again",
    "others": "Yes/no by the model's belief, other pictures",
    "ordinary": "Choosing one class of all",
    "runs": "This campaign's own runs, a dot each",
}
TITLES = {"photographs": "Paintings to photographs", "digits": "USPS to MNIST digits"}
# Colours that people with colour blindness tell apart, after Okabe and Ito; a dash as well.
STYLES = {
    "uniform-card": ("#0072b2", ""),
    "uniform-page": ("#56b4e9", ""),
    "again": ("#009e73", "7 4"),
    "others": ("#cc79a7", "7 4"),
    "ordinary": ("#d55e00", "2 3"),
    "runs": ("#7f7f7f", ""),
}
LEFT, TOP, WIDTH, HEIGHT = 64, 16, 560, 320
TICKS = 5


@dataclass(frozen=True, slots=True)
class Point:
    """What was reached after so many minutes; `name`: of the run that did, "" of a study's."""

    minutes: float
    answers: int
    mean: float
    lowest: float
    highest: float
    seeds: int
    name: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """One way of labelling."""

    way: str
    seconds: float  # for each answer
    points: tuple[Point, ...]  # fewest minutes first

    @property
    def title(self) -> str:
        """In words."""
        return WAYS[self.way]


@dataclass(frozen=True, slots=True)
class Minutes:
    """The ways of one task, beside each other."""

    looks: str
    lines: tuple[Line, ...]

    @property
    def title(self) -> str:
        """Of the task."""
        return TITLES[self.looks]

    @property
    def not_measured(self) -> tuple[str, ...]:
        """Ways of which the study knows nothing yet."""
        known = {line.way for line in self.lines} | {"uniform-page", "runs"}
        return tuple(title for way, title in WAYS.items() if way not in known)


def minutes_of(
    *,
    card: float,
    page: float | None,
    kway: float,
    runs: Sequence[Point] = (),
    run_seconds: float = 0.0,
) -> list[Minutes]:
    """The studied tasks in minutes.

    Args:
        card, page: seconds for a yes/no question alone and on a page, None where that is not known.
        kway: seconds to choose one class of all.
        runs: of a campaign, in minutes, beside each task; single points, as they differ in method and labels.
        run_seconds: that each of their answers took.
    """
    found = []
    for name in dict.fromkeys(item.looks for item in STUDIED):
        seconds = {"uniform-card": card, "again": card, "others": card, "ordinary": kway}
        if page is not None:
            seconds["uniform-page"] = page
        lines = [
            Line(way, seconds[way], points)
            for way in WAYS
            if way in seconds and (points := _points(name, way, seconds[way]))
        ]
        if runs:
            lines.append(Line("runs", run_seconds, tuple(runs)))
        found.append(Minutes(name, tuple(lines)))
    return found


def _points(looks: str, way: str, seconds: float) -> tuple[Point, ...]:
    members = [
        item
        for item in STUDIED
        if item.looks == looks and item.way == way.removesuffix("-card").removesuffix("-page")
    ]
    return tuple(_point(item, seconds) for item in sorted(members, key=lambda item: item.answers))


def _point(item: Studied, seconds: float) -> Point:
    accuracies = item.accuracies
    return Point(
        minutes=item.answers * seconds / 60,
        answers=item.answers,
        mean=sum(accuracies) / len(accuracies),
        lowest=min(accuracies),
        highest=max(accuracies),
        seeds=len(accuracies),
    )


@dataclass(frozen=True, slots=True)
class Drawn:
    """A line in the drawing: coordinates, and where its name stands; without a path its dots stand alone."""

    title: str
    colour: str
    dash: str
    path: str
    dots: tuple[tuple[float, float], ...]
    bars: tuple[tuple[float, float, float], ...]  # from the lowest to the highest seed: x, y, y
    y: int


@dataclass(frozen=True, slots=True)
class Drawing:
    """Lines, and the ticks of both axes as (coordinate, words)."""

    lines: list[Drawn]
    across: list[tuple[float, str]]
    up: list[tuple[float, str]]


def drawing_of(minutes: Minutes) -> Drawing:
    """Accuracy from 0 to 100 % over minutes from 0."""
    last = max((point.minutes for line in minutes.lines for point in line.points), default=1.0)
    step = _round_step(last / TICKS)
    end = step * ceil(last / step)

    def x(value: float) -> float:
        return round(LEFT + WIDTH * value / end, 1)

    def y(share: float) -> float:
        return round(TOP + HEIGHT * (1 - share), 1)

    lines = []
    for place, line in enumerate(minutes.lines):
        dots = tuple((x(point.minutes), y(point.mean)) for point in line.points)
        colour, dash = STYLES[line.way]
        lines.append(
            Drawn(
                title=line.title,
                colour=colour,
                dash=dash,
                path="" if line.way == "runs" else " ".join(f"{across},{up}" for across, up in dots),
                dots=dots,
                bars=tuple((x(point.minutes), y(point.lowest), y(point.highest)) for point in line.points),
                y=TOP + HEIGHT + 62 + 24 * place,
            )
        )
    return Drawing(
        lines=lines,
        across=[(x(step * tick), f"{step * tick:g}") for tick in range(round(end / step) + 1)],
        up=[(y(percent / 100), f"{percent} %") for percent in range(0, 101, 20)],
    )


def _round_step(rough: float) -> float:
    """The next of 1, 2, 5 times a power of ten."""
    unit = 1.0
    while unit > rough:
        unit /= 10
    while 10 * unit <= rough:
        unit *= 10
    return next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= rough)
