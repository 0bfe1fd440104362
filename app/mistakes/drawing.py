"""The map and the confusion as drawings, for pages and as files. Pure."""

import enum
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.registry.kept_pictures import Among, KeptPictures
from app.runs.curves import COLOURS

SIDE, MARGIN = 640, 14  # of the map
OUTER_FENCE = 3.0  # quartile distances beyond the quartiles; Tukey 1977 calls what lies beyond "far out"
SIGNS = ("circle", "square", "triangle", "diamond")
DIFFERENT = len(COLOURS) * len(SIGNS)  # classes that are told apart at once
DOMAINS = {Among.TRAIN: "target", Among.SOURCE: "source"}
CELL, LABELS = 34, 150  # of the confusion
LONGEST = 18  # letters of a name beside it


class By(enum.StrEnum):
    """What colour and sign of a point mean; on either map points of the source are hollow."""

    DOMAIN = "domain"
    CLASS = "class"


class Layout(enum.StrEnum):
    """By what pictures are placed: principal components, or UMAP, which is computed on request."""

    PCA = "pca"
    UMAP = "umap"


@dataclass(frozen=True, slots=True)
class Point:
    """A picture on the map."""

    example_id: int
    x: float
    y: float
    words: str


@dataclass(frozen=True, slots=True)
class Cloud:
    """Points that look alike: of one domain, and on a map of classes of one class."""

    colour: str
    sign: str
    is_hollow: bool
    is_faint: bool
    points: list[Point]


@dataclass(frozen=True, slots=True)
class Key:
    """What a sign stands for; `predicted_class` where it is a class."""

    words: str
    colour: str
    sign: str
    is_hollow: bool
    count: int
    predicted_class: int | None


@dataclass(frozen=True, slots=True)
class Map:
    """A drawing of SIDE by SIDE; the axes' shares of the variance, None where they are no components."""

    clouds: list[Cloud]
    keys: list[Key]
    shares: tuple[float, float] | None
    repeats: bool  # whether signs stand for several classes
    outside: int  # points so far from the others that they are drawn at the edge


def map_of(
    kept: KeptPictures,
    classes: Sequence[str],
    *,
    by: By,
    only: int | None = None,
    umap: NDArray[np.float32] | None = None,
) -> Map:
    """The map; `only`: the class whose points are not faint. Faint ones lie below the others.

    `umap`: (P, 2) places in the stead of the components.
    """
    places = (kept.map_places[:, :2] if umap is None else umap).astype(np.float64)
    low, high = places.min(0), places.max(0)
    near = _near(places)
    if near.any():
        low, high = places[near].min(0), places[near].max(0)
    # One scale for both axes: what is far apart looks far apart.
    reach = max(float((high - low).max()), 1e-9)
    scaled = (places - (low + high) / 2) / reach * (SIDE - 2 * MARGIN) + SIDE / 2
    scaled = scaled.clip(MARGIN / 2, SIDE - MARGIN / 2)
    clouds: dict[tuple[int, int], Cloud] = {}
    for row, (x, y) in zip(kept.map_rows.tolist(), scaled.tolist(), strict=True):
        code, label = int(kept.among[row]), int(kept.classes[row, 0])
        looks = code, label if by is By.CLASS or only is not None else -1
        if looks not in clouds:
            clouds[looks] = _cloud(by, list(Among)[code], label, is_faint=only not in {None, label})
        domain = DOMAINS[list(Among)[code]]
        words = f"{domain}: {classes[label]}, {100 * float(kept.probabilities[row, 0]):.0f} %"
        point = Point(int(kept.example_ids[row]), round(x, 1), round(SIDE - y, 1), words)
        clouds[looks].points.append(point)
    first, second = kept.map_shares[:2].tolist()
    ordered = sorted(clouds, key=lambda looks: (not clouds[looks].is_faint, looks))
    return Map(
        clouds=[clouds[looks] for looks in ordered],
        keys=_keys(kept, classes, by),
        shares=(first, second) if umap is None else None,
        repeats=by is By.CLASS and len(classes) > DIFFERENT,
        outside=int((~near).sum()) if near.any() else 0,
    )


def _near(places: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which of the places (P, 2) are not far out on either axis, by Tukey's outer fences."""
    first, third = np.percentile(places, [25, 75], axis=0)
    wide = third - first
    fence = np.where(wide > 0, OUTER_FENCE * wide, np.inf)  # half of them may lie at one place
    near: NDArray[np.bool_] = ((places >= first - fence) & (places <= third + fence)).all(1)
    return near


def _cloud(by: By, among: Among, label: int, *, is_faint: bool) -> Cloud:
    colour, sign = _look(by, among, label)
    return Cloud(colour, sign, among is Among.SOURCE, is_faint, [])


def _look(by: By, among: Among, label: int) -> tuple[str, str]:
    if by is By.DOMAIN:
        place = list(DOMAINS).index(among)
        return COLOURS[1 - place], SIGNS[2 * (1 - place)]
    return COLOURS[label % len(COLOURS)], SIGNS[label // len(COLOURS) % len(SIGNS)]


def _keys(kept: KeptPictures, classes: Sequence[str], by: By) -> list[Key]:
    codes, labels = kept.among[kept.map_rows], kept.classes[kept.map_rows, 0]
    if by is By.DOMAIN:
        return [
            Key(words, *_look(by, among, 0), among is Among.SOURCE, int((codes == among.code).sum()), None)
            for among, words in DOMAINS.items()
        ]
    counts = np.bincount(labels, minlength=len(classes)).tolist()
    return [
        Key(name, *_look(by, Among.TRAIN, label), False, counts[label], label)
        for label, name in enumerate(classes)
        if counts[label]
    ]


@dataclass(frozen=True, slots=True)
class Cell:
    """A count of the confusion; `shade` from 0 to 1 is the root of its share of the row."""

    x: int
    y: int
    count: int
    shade: float


@dataclass(frozen=True, slots=True)
class Matrix:
    """The confusion as a drawing: names along both sides, and the cells that are not empty."""

    size: int
    rows: list[tuple[int, str]]
    cells: list[Cell]


def matrix_of(counts: Sequence[Sequence[int]], classes: Sequence[str]) -> Matrix:
    """True classes in rows, predicted ones in columns."""
    places = [LABELS + CELL * place for place in range(len(classes))]
    cells = [
        Cell(places[column], places[row], count, round((count / sum(line)) ** 0.5, 2))
        for row, line in enumerate(counts)
        for column, count in enumerate(line)
        if count
    ]
    short = [name if len(name) <= LONGEST else name[: LONGEST - 1] + "…" for name in classes]
    return Matrix(LABELS + CELL * len(classes) + 8, list(zip(places, short, strict=True)), cells)
