"""Line charts as SVG, readable on light and dark pages, without a plotting library."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 760, 420
LEFT, RIGHT, TOP, BOTTOM = 64, 32, 44, 52  # margins
ROW = 22  # of the legend, which stands below: names can be long
TICKS = 5
# Okabe and Ito's colours, the blue lighter, without black and yellow: those vanish on one of the grounds.
COLOURS = ("#2A88C8", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
DASHES = ("", "7 4", "2 3")  # tell lines apart once the colours repeat, and without colour
NEUTRAL = "#808080"  # contrast of about 4 on white and 5 on black


@dataclass(frozen=True, slots=True)
class Series:
    """A line: its name, and its points (x, y) from left to right."""

    name: str
    points: Sequence[tuple[float, float]]


def line_chart(title: str, x_label: str, y_label: str, series: Sequence[Series]) -> str:
    """An SVG document with one line per series, axes with round numbers, and a legend.

    Args:
        title, x_label, y_label: text; markup in it is escaped.
        series: at least one, each with at least one point.

    Raises:
        ValueError: there is no point to draw.
    """
    points = [point for line in series for point in line.points]
    if not points:
        raise ValueError("a chart needs at least one point")
    xs = _round_ticks(min(x for x, _ in points), max(x for x, _ in points))
    ys = _round_ticks(min(y for _, y in points), max(y for _, y in points))
    height = HEIGHT + 8 + ROW * len(series)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="{escape(title)}" font-family="system-ui, sans-serif" font-size="13" fill="{NEUTRAL}">',
        f'<text x="{LEFT}" y="24" font-size="16" font-weight="600">{escape(title)}</text>',
        *_axes(xs, ys, x_label, y_label),
    ]
    for number, line in enumerate(series):
        parts += _line(number, line, xs, ys)
    return "\n".join([*parts, "</svg>", ""])


def _axes(xs: list[float], ys: list[float], x_label: str, y_label: str) -> list[str]:
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    parts = []
    for value in ys:
        y = _place(value, ys, bottom, TOP)
        parts.append(f'<path d="M{LEFT} {y:.1f}H{right}" stroke="{NEUTRAL}" stroke-opacity="0.3"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>')
    for value in xs:
        x = _place(value, xs, LEFT, right)
        parts.append(f'<path d="M{x:.1f} {bottom}v5" stroke="{NEUTRAL}"/>')
        parts.append(f'<text x="{x:.1f}" y="{bottom + 20}" text-anchor="middle">{value:,.10g}</text>')
    parts.append(f'<path d="M{LEFT} {bottom}H{right}" stroke="{NEUTRAL}"/>')
    middle = (LEFT + right) / 2
    parts.append(f'<text x="{middle}" y="{HEIGHT - 10}" text-anchor="middle">{escape(x_label)}</text>')
    up = f'transform="translate(16 {(TOP + bottom) / 2}) rotate(-90)" text-anchor="middle"'
    return [*parts, f"<text {up}>{escape(y_label)}</text>"]


def _line(number: int, line: Series, xs: list[float], ys: list[float]) -> list[str]:
    colour, dash = COLOURS[number % len(COLOURS)], DASHES[number // len(COLOURS) % len(DASHES)]
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    placed = [(_place(x, xs, LEFT, right), _place(y, ys, bottom, TOP)) for x, y in line.points]
    style = f'fill="none" stroke="{colour}" stroke-width="2" stroke-linejoin="round"'
    style += f' stroke-dasharray="{dash}"' if dash else ""
    parts = [f'<path d="M{"L".join(f"{x:.1f} {y:.1f}" for x, y in placed)}" {style}/>']
    if len(placed) <= TICKS:  # few points are measurements of their own; many are a curve
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>' for x, y in placed]
    row = HEIGHT + 8 + ROW * number
    parts.append(f'<path d="M{LEFT} {row}h24" {style}/>')
    parts.append(f'<text x="{LEFT + 32}" y="{row + 4}">{escape(line.name)}</text>')
    return parts


def _place(value: float, ticks: list[float], start: float, end: float) -> float:
    return start + (value - ticks[0]) / (ticks[-1] - ticks[0]) * (end - start)


def _round_ticks(low: float, high: float) -> list[float]:
    """Round numbers at equal distances, from one at or below `low` to one at or above `high`."""
    if high <= low:
        low, high = low - 1, high + 1
    rough = (high - low) / TICKS
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= rough * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(step * number, 10) for number in range(first, last + 1)]
