"""HTML routes: tables and drawings of a trial's pictures as files."""

from collections.abc import Iterator
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response, StreamingResponse

from app.access import admin_only
from app.deps import CurrentUser, SessionDep, StorageDep
from app.labels.exports.formats import csv_pieces
from app.mistakes import service, umaps
from app.mistakes.drawing import Layout, map_of, matrix_of
from app.mistakes.schemas import MapQuery, PicturesQuery
from app.mistakes.service import Picture, Seen
from app.pages import templates
from app.runs.files import csv_file
from clarinet.files.tables import guarded

router = APIRouter(include_in_schema=False)

DIGITS = 6  # of a probability


@router.get("/trials/{trial_id}/pictures.csv")
@admin_only
def download_pictures(
    *,
    request: Request,
    trial_id: UUID,
    asked: Annotated[PicturesQuery, Query()],
    session: SessionDep,
    storage: StorageDep,
    user: CurrentUser,
) -> Response:
    """A list as a table, with file names."""
    seen = service.look(session, storage, trial_id, by=user)
    rows = seen.listing(asked.wanted(seen.first_group)).rows.tolist()
    names = list(map(guarded, seen.classes))
    places = range(1, seen.kept.classes.shape[1] + 1)
    columns = ["example", "among", "position", "file", "true_class", "margin", "people_yes", "people_no"]
    columns += [name for place in places for name in (f"class_{place}", f"probability_{place}")]

    def pieces() -> Iterator[bytes]:
        # The route's own session ends before the body is sent.
        with request.app.state.database.read.begin() as reading:
            found = service.pictures(reading, seen, rows)
            yield from csv_pieces(columns, (_cells(picture, names) for picture in found))

    return StreamingResponse(
        pieces(),
        media_type="text/csv; charset=utf-8",
        headers={
            "Content-Disposition": 'attachment; filename="pictures.csv"',
            "Cache-Control": "no-store",
        },
    )


def _cells(picture: Picture, names: list[str]) -> tuple[object, ...]:
    said = picture.verdict
    return (
        picture.example_id,
        picture.among.value,
        picture.position,
        guarded(picture.filename or ""),
        None if picture.true_class is None else names[picture.true_class],
        f"{picture.margin:.{DIGITS}f}",
        said and said.yes,
        said and said.no,
        *(cell for label, share in picture.likeliest for cell in (names[label], f"{share:.{DIGITS}f}")),
    )


@router.get("/trials/{trial_id}/confusion.csv")
@admin_only
def download_confusion(
    trial_id: UUID,
    asked: Annotated[PicturesQuery, Query()],
    session: SessionDep,
    storage: StorageDep,
    user: CurrentUser,
) -> Response:
    """The confusion as a table: true classes in rows, predicted ones in columns."""
    seen = service.look(session, storage, trial_id, by=user)
    names = list(map(guarded, seen.classes))
    rows = [
        [name, *map(str, line)] for name, line in zip(names, _counts(seen, asked), strict=True) if any(line)
    ]
    return csv_file("confusion.csv", [["true_class", *names], *rows])


@router.get("/trials/{trial_id}/confusion.svg")
@admin_only
def draw_confusion(
    trial_id: UUID,
    asked: Annotated[PicturesQuery, Query()],
    session: SessionDep,
    storage: StorageDep,
    user: CurrentUser,
) -> Response:
    """The confusion as a drawing."""
    seen = service.look(session, storage, trial_id, by=user)
    return _drawing("confusion", matrix=matrix_of(_counts(seen, asked), seen.classes))


def _counts(seen: Seen, asked: PicturesQuery) -> list[list[int]]:
    """Counts by true and predicted class; zeros where no true class is known."""
    classes = len(seen.classes)
    among = asked.among or seen.first_group
    return service.confusion_of(seen.kept, among, classes) or [[0] * classes] * classes


@router.get("/trials/{trial_id}/map.csv")
@admin_only
def download_map(
    trial_id: UUID,
    asked: Annotated[MapQuery, Query()],
    session: SessionDep,
    storage: StorageDep,
    user: CurrentUser,
) -> Response:
    """The pictures on the map with all components that are kept, or with their two places by UMAP."""
    seen = service.look(session, storage, trial_id, by=user)
    rows, names = service.map_rows(seen), list(map(guarded, seen.classes))
    umap = umaps.shown(session, storage, seen, asked.layout)
    places, word = (seen.kept.map_places, "component") if umap is None else (umap, "umap")
    components = [f"{word}_{place}" for place in range(1, places.shape[1] + 1)]
    found = service.pictures(session, seen, rows)
    cells = (
        [
            str(picture.example_id),
            picture.among.value,
            str(picture.position),
            guarded(picture.filename or ""),
            "" if picture.true_class is None else names[picture.true_class],
            names[picture.predicted_class],
            f"{picture.probability:.{DIGITS}f}",
            *(f"{value:.5g}" for value in place),
        ]
        for picture, place in zip(found, places.tolist(), strict=True)
    )
    columns = ["example", "among", "position", "file", "true_class", "predicted_class", "probability"]
    return csv_file(_name_of("map", asked.layout, "csv"), [[*columns, *components], *cells])


@router.get("/trials/{trial_id}/map.svg")
@admin_only
def draw_map(
    trial_id: UUID,
    asked: Annotated[MapQuery, Query()],
    session: SessionDep,
    storage: StorageDep,
    user: CurrentUser,
) -> Response:
    """The map as a drawing."""
    seen = service.look(session, storage, trial_id, by=user)
    service.map_rows(seen, asked.predicted_class)  # which refuses where there is none, or no such class
    umap = umaps.shown(session, storage, seen, asked.layout)
    drawn = map_of(seen.kept, seen.classes, by=asked.by, only=asked.predicted_class, umap=umap)
    return _drawing("map", _name_of("map", asked.layout, "svg"), map=drawn)


def _name_of(stem: str, layout: Layout, kind: str) -> str:
    return f"{stem}.{kind}" if layout is Layout.PCA else f"{stem}-{layout}.{kind}"


def _drawing(name: str, filename: str = "", **shown: object) -> Response:
    filename = filename or f"{name}.svg"
    drawn = templates.env.get_template(f"mistakes/{name}.svg").render(**shown, alone=True)
    return Response(
        drawn,
        media_type="image/svg+xml",
        headers={"Content-Disposition": f'attachment; filename="{filename}"', "Cache-Control": "no-store"},
    )
