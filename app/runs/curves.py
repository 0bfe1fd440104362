"""Curves of several runs in one drawing, for the page and as a file. Pure."""

from dataclasses import dataclass

from app.runs import words
from app.runs.comparing import Comparison, ticks_of

# Colours that people with colour blindness tell apart, after Okabe and Ito; dashes tell apart what is left.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#7f7f7f")
DASHES = ("", "7 4", "2 3")
LEFT, TOP, WIDTH, HEIGHT = 64, 16, 600, 320
LONGEST_LABEL = 60


@dataclass(frozen=True, slots=True)
class Line:
    """A run in the drawing: coordinates of its mean and of the band around it, and where its name stands."""

    name: str
    colour: str
    dash: str
    mean: str
    band: str
    y: int


@dataclass(frozen=True, slots=True)
class Drawing:
    """Lines, and the ticks of both axes as (coordinate, words)."""

    lines: list[Line]
    across: list[tuple[float, str]]
    up: list[tuple[float, str]]


def drawing_of(comparison: Comparison) -> Drawing:
    """Accuracy from 0 to 100 % over epochs; a band reaches from the lowest to the highest seed."""
    epochs = comparison.epochs

    def x(epoch: float) -> float:
        return round(LEFT + WIDTH * epoch / epochs, 1)

    def y(share: float) -> float:
        return round(TOP + HEIGHT * (1 - share), 1)

    lines = []
    for place, each in enumerate(run for run in comparison.runs if run.points):
        mean = " ".join(f"{x(point.epoch)},{y(point.mean)}" for point in each.points)
        upper = [f"{x(point.epoch)},{y(point.high)}" for point in each.points]
        lower = [f"{x(point.epoch)},{y(point.low)}" for point in reversed(each.points)]
        is_several = any(point.seeds > 1 for point in each.points)
        called = words.in_table(each.run)
        name = f"Run {each.run.number}, {each.run.name or called['method'].words}, {called['setting'].words}"
        lines.append(
            Line(
                name=name if len(name) <= LONGEST_LABEL else name[: LONGEST_LABEL - 1] + "…",
                colour=COLOURS[place % len(COLOURS)],
                dash=DASHES[place // len(COLOURS) % len(DASHES)],
                mean=mean,
                band=" ".join(upper + lower) if is_several else "",
                y=TOP + HEIGHT + 76 + 24 * place,
            )
        )
    return Drawing(
        lines=lines,
        across=[(x(tick), str(tick)) for tick in ticks_of(epochs)],
        up=[(y(percent / 100), f"{percent} %") for percent in range(0, 101, 20)],
    )
