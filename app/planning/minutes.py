"""What an annotator's minutes buy: accuracy by minutes, of yes/no questions and of ordinary labelling. Pure.

The curves are measured: of two tasks by a study, whose answers a program gave without an error, and of a
campaign by its own runs. Seconds turn their answers into minutes. Nothing is drawn beyond what was measured.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, inf, log, log10

from app.planning.studied import STUDIED, Studied

WAYS = {
    "uniform-card": "Yes/no, one picture at a time",
    "uniform-page": "Yes/no, a page of pictures",
    "again": "Yes/no by the model's belief, pictures with a no again",
    "others": "Yes/no by the model's belief, other pictures",
    "ordinary": "Choosing one class of all",
    "runs": "This campaign's own runs, a dot each",
}
TITLES = {
    "photographs": "From paintings, which people label, to photographs",
    "digits": "From USPS digits, which people label, to MNIST digits",
}
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
NEAR = 0.01  # of the best accuracy: less is no difference that anybody would pay for


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
class Reached:
    """When a way came near the best accuracy of its task; None: at no time that was measured."""

    title: str
    point: Point | None


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
    def best(self) -> float:
        """The highest mean accuracy that the study measured."""
        return max(point.mean for line in self._studied for point in line.points)

    @property
    def reached(self) -> tuple[Reached, ...]:
        """When each way came within NEAR of it, the soonest first: what the chart is there to tell."""
        found = [
            Reached(line.title, next((each for each in line.points if each.mean >= self.best - NEAR), None))
            for line in self._studied
        ]
        return tuple(sorted(found, key=lambda each: each.point.minutes if each.point else inf))

    @property
    def _studied(self) -> tuple[Line, ...]:
        return tuple(line for line in self.lines if line.way != "runs")

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
    """Accuracy from 0 to 100 % over minutes, of which equal steps are equal factors.

    Ways differ most in the first minutes; by equal minutes these would all lie at the edge. What took no
    minutes, such as a run on labels from elsewhere alone, has no place there: the table tells of it.
    """
    places = [(line, tuple(point for point in line.points if point.minutes > 0)) for line in minutes.lines]
    known = [point.minutes for _, points in places for point in points]
    ticks = _ticks(min(known, default=1.0), max(known, default=1.0))

    def x(value: float) -> float:
        return round(LEFT + WIDTH * log(value / ticks[0]) / log(ticks[-1] / ticks[0]), 1)

    def y(share: float) -> float:
        return round(TOP + HEIGHT * (1 - share), 1)

    lines = []
    for place, (line, points) in enumerate(places):
        dots = tuple((x(point.minutes), y(point.mean)) for point in points)
        colour, dash = STYLES[line.way]
        lines.append(
            Drawn(
                title=line.title,
                colour=colour,
                dash=dash,
                path="" if line.way == "runs" else " ".join(f"{across},{up}" for across, up in dots),
                dots=dots,
                bars=tuple((x(point.minutes), y(point.lowest), y(point.highest)) for point in points),
                y=TOP + HEIGHT + 62 + 24 * place,
            )
        )
    return Drawing(
        lines=lines,
        across=[(x(tick), f"{tick:g}") for tick in ticks],
        up=[(y(percent / 100), f"{percent} %") for percent in range(0, 101, 20)],
    )


def _ticks(first: float, last: float) -> list[float]:
    """1, 2 and 5 times powers of ten, from one at or below the first to one at or above the last."""
    found = [1.0]
    while found[0] > first:
        found.insert(0, _beside(found[0], -1))
    while found[0] <= first and _beside(found[0], 1) <= first:
        found = [_beside(found[0], 1)]
    while found[-1] < last or len(found) == 1:
        found.append(_beside(found[-1], 1))
    return found


def _beside(tick: float, step: int) -> float:
    """The next such number, or the one before."""
    power = floor(log10(tick) + 1e-9)
    place = round(tick / 10**power)
    up, down = {1: 2, 2: 5, 5: 10}, {1: 0.5, 2: 1, 5: 2}
    return float(f"{(up if step > 0 else down)[place] * 10.0**power:.6g}")
