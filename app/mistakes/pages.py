"""HTML routes: the pictures of a trial as lists, one of them large, and the map."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any
from urllib.parse import urlencode
from uuid import UUID

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import RedirectResponse, Response
from sqlalchemy.orm import Session

from app.access import admin_only
from app.clock import utc_now
from app.datasets.pictures import image_address, image_addresses
from app.deps import CurrentUser, SessionDep, StorageDep
from app.errors import Conflict
from app.evaluations import service as evaluations
from app.mistakes import service, umaps
from app.mistakes.drawing import By, Layout, map_of
from app.mistakes.errors import MapNotKept, PicturesNotKept, UmapNotMade
from app.mistakes.schemas import MapQuery, PictureQuery, PicturesQuery
from app.mistakes.service import Only, Order, Seen
from app.pages import render, see_other, wants_fragment
from app.registry import predictions
from app.registry.prediction_models import PredictionState
from app.runs import service as runs
from app.runs.models import Trial, TrialState

router = APIRouter(include_in_schema=False)

SHOWN = 60  # pictures on a page
MOST_ON_ITS_PAGE = 50  # classes whose confusion it has whole; app.confused says of how many other pages do
ExampleId = Annotated[int, Path(ge=1, le=2**63 - 1)]
# The lists that a page offers, and what they are limited to.
LISTS: tuple[tuple[str, Only | None, Order], ...] = (
    ("Surest", None, Order.SURE),
    ("Least sure", None, Order.UNSURE),
    ("Surest mistakes", Only.MISTAKES, Order.SURE),
    ("People said no", Only.DISPUTED, Order.SURE),
)


@router.get("/trials/{trial_id}/pictures")
@admin_only
def show_pictures(
    *,
    request: Request,
    trial_id: UUID,
    asked: Annotated[PicturesQuery, Query()],
    session: SessionDep,
    storage: StorageDep,
    user: CurrentUser,
) -> Response:
    """A trial's pictures: a cell of its confusion, the least sure, the mistakes, where people said no."""
    trial = service.get_trial(session, trial_id, by=user)
    try:
        seen = service.look(session, storage, trial_id, by=user)
    except PicturesNotKept as error:
        return _in_words(request, session, trial, error)
    wanted, classes = asked.wanted(seen.first_group), seen.classes
    listing = seen.listing(wanted)
    found, following = service.page_of(session, seen, listing, after=asked.after, limit=SHOWN)
    address = address_of(request, "show_pictures", trial)
    among = {"among": wanted.among.value}
    return render(
        request,
        "mistakes/pictures.html",
        **_head(request, session, trial, "show_pictures", asked.chosen()),
        seen=seen,
        classes=classes,
        wanted=wanted,
        lists=[
            (words, address(asked.chosen(only=only, order=order)), (only, order) == (asked.only, asked.order))
            for words, only, order in LISTS
        ],
        groups=[
            (each, count, address(asked.chosen(among=each)), each is wanted.among)
            for each, count in seen.groups.items()
        ],
        pictures=found,
        count=len(listing.rows),
        page_of=pages_of(request, trial, asked.chosen(**among)),
        image_of=_images(request, seen),
        next_url=address(asked.chosen() | {"after": str(following)}) if following else None,
        first_url=address(asked.chosen()) if asked.after else "",
        whole_url=address(asked.chosen(true_class=None, predicted_class=None)),
        cell_address=lambda true, predicted: address(
            among | ({} if true is None else {"true_class": str(true)}) | {"predicted_class": str(predicted)}
        ),
        counts=service.confusion_of(seen.kept, wanted.among, len(classes)),
        most_on_its_page=MOST_ON_ITS_PAGE,
        predicted=service.predicted_counts(seen.kept, wanted.among, len(classes)),
        csv_url=address_of(request, "download_pictures", trial)(asked.chosen(**among)),
        confusion_csv_url=address_of(request, "download_confusion", trial)(among),
        confusion_svg_url=address_of(request, "draw_confusion", trial)(among),
    )


@router.get("/trials/{trial_id}/pictures/{example_id}")
@admin_only
def show_picture(
    *,
    request: Request,
    trial_id: UUID,
    example_id: ExampleId,
    asked: Annotated[PictureQuery, Query()],
    session: SessionDep,
    storage: StorageDep,
    user: CurrentUser,
) -> Response:
    """One picture, large, with probabilities; and the way to those beside it where it was opened."""
    seen = service.look(session, storage, trial_id, by=user)
    row, trial = seen.row_of(example_id), seen.trial
    (picture,) = service.pictures(session, seen, [row])
    page_of = pages_of(request, trial, asked.chosen())
    if asked.by is not None:
        back = address_of(request, "show_map", trial)(asked.chosen())
        beside = service.beside_on_map(seen, row, asked.predicted_class)
    else:
        back = address_of(request, "show_pictures", trial)(asked.chosen())
        beside = seen.listing(asked.wanted(picture.among)).beside(row)
    before, behind = (None if one is None else page_of(int(seen.kept.example_ids[one])) for one in beside)
    return render(
        request,
        "mistakes/picture.html",
        **_head(request, session, trial, "", {}),
        seen=seen,
        classes=seen.classes,
        picture=picture,
        named=evaluations.named_of(session, seen.model.id, example_id),
        image_of=_images(request, seen),
        back=back,
        is_from_map=asked.by is not None,
        before=before,
        behind=behind,
    )


@router.post("/trials/{trial_id}/pictures")
@admin_only
def ask_for_pictures(
    request: Request, trial_id: UUID, session: SessionDep, storage: StorageDep, user: CurrentUser
) -> Response:
    """Let the model of an older trial predict its target; asking twice is asking once."""
    trial = service.get_trial(session, trial_id, by=user)
    model = service.model_of(session, trial)
    if service.newest_prediction(session, trial, model, *UNDER_WAY, PredictionState.READY) is None:
        target = trial.run.target_dataset_id
        predictions.predict_dataset(session, storage, model, target, by=user, now=utc_now())
    return see_other(request, "show_pictures", trial_id=str(trial_id))


UNDER_WAY = PredictionState.QUEUED, PredictionState.RUNNING


@router.get("/trials/{trial_id}/map")
@admin_only
def show_map(
    *,
    request: Request,
    trial_id: UUID,
    asked: Annotated[MapQuery, Query()],
    session: SessionDep,
    storage: StorageDep,
    user: CurrentUser,
) -> Response:
    """Where the trial's model places pictures of source and target, and the same pictures as a list."""
    trial = service.get_trial(session, trial_id, by=user)
    try:
        seen = service.look(session, storage, trial_id, by=user)
        rows, following = service.map_page(seen, asked.predicted_class, after=asked.after, limit=SHOWN)
    except (PicturesNotKept, MapNotKept) as error:
        return _in_words(request, session, trial, error)
    address = address_of(request, "show_map", trial)
    umap = umaps.umap_of(session, seen)
    try:
        places = umaps.shown(session, storage, seen, asked.layout)
    except UmapNotMade:  # the page says so in the drawing's stead
        places = None
    is_drawn = asked.layout is Layout.PCA or places is not None
    if is_drawn and wants_fragment(request):  # the page that waited for it lacks the map's scripts
        return Response(headers={"HX-Refresh": "true"})
    return render(
        request,
        "mistakes/map.html",
        **_head(request, session, trial, "show_map", asked.chosen()),
        seen=seen,
        classes=seen.classes,
        map=map_of(seen.kept, seen.classes, by=asked.by, only=asked.predicted_class, umap=places),
        is_drawn=is_drawn,
        layouts=[
            (each, address(asked.chosen(layout=None if each is Layout.PCA else each)), each is asked.layout)
            for each in Layout
        ],
        umap=umap,
        umap_words=umaps.words_of(umap),
        not_installed=None if umaps.is_installed() else umaps.NOT_INSTALLED,
        predicted_class=asked.predicted_class,
        ways=[(each, address(asked.chosen(by=each)), each is asked.by) for each in By],
        class_urls=[address(asked.chosen(predicted_class=place)) for place in range(len(seen.classes))],
        whole_url=address(asked.chosen(predicted_class=None)),
        pictures=list(service.pictures(session, seen, rows)),
        count=len(service.map_rows(seen, asked.predicted_class)),
        image_places={
            is_source: image_address(request, dataset_id)
            for is_source, dataset_id in (
                (True, trial.run.source_dataset_id),
                (False, trial.run.target_dataset_id),
            )
        },
        page_of=pages_of(request, trial, asked.chosen(by=asked.by)),
        image_of=_images(request, seen),
        next_url=address(asked.chosen() | {"after": str(following)}) if following else None,
        first_url=address(asked.chosen()) if asked.after else "",
        svg_url=address_of(request, "draw_map", trial)(asked.chosen()),
        csv_url=address_of(request, "download_map", trial)(MapQuery(layout=asked.layout).chosen()),
    )


@router.post("/trials/{trial_id}/map/umap")
@admin_only
def ask_for_umap(
    request: Request, trial_id: UUID, session: SessionDep, storage: StorageDep, user: CurrentUser
) -> Response:
    """Let a worker compute the UMAP of the map; asking twice is asking once."""
    seen = service.look(session, storage, trial_id, by=user)
    umaps.ask_for_umap(session, seen, now=utc_now())
    path = request.app.url_path_for("show_map", trial_id=str(trial_id))
    return RedirectResponse(f"{path}?{urlencode({'layout': Layout.UMAP.value})}", status_code=303)


def address_of(request: Request, name: str, trial: Trial) -> Callable[[Mapping[str, str]], str]:
    """The address of a route about a trial, by its query."""
    path = str(request.app.url_path_for(name, trial_id=str(trial.id)))
    return lambda query: f"{path}?{urlencode(query)}" if query else path


def pages_of(request: Request, trial: Trial, query: Mapping[str, str]) -> Callable[[int], str]:
    """The address of each picture's page, by its example; a map has thousands of them."""
    path = address_of(request, "show_pictures", trial)({})
    end = f"?{urlencode(query)}" if query else ""
    return lambda example_id: f"{path}/{example_id}{end}"


def _images(request: Request, seen: Seen) -> Callable[[service.Picture], str]:
    addresses = {dataset_id: image_addresses(request, dataset_id) for dataset_id in seen.datasets}
    return lambda picture: addresses[picture.dataset_id](picture.example_id)


def _head(
    request: Request, session: Session, trial: Trial, name: str, query: Mapping[str, str]
) -> dict[str, Any]:
    """What the head of each of these pages says; with a route's name, also the ways to the other seeds."""
    others = [each for each in trial.run.trials if each.state is TrialState.SUCCEEDED]
    return {
        "trial": trial,
        "run": trial.run,
        "names": runs.names_of(session, [trial.run]),
        "seeds": [
            (each.seed, address_of(request, name, each)(query), each.id == trial.id)
            for each in others
            if name and len(others) > 1
        ],
    }


def _in_words(request: Request, session: Session, trial: Trial, error: Conflict) -> Response:
    """The page of a trial that has not what was asked for: why, and what makes it."""
    prediction, can_predict = None, False
    if isinstance(error, PicturesNotKept) and error.is_older:
        model = service.model_of(session, trial)
        prediction = service.newest_prediction(session, trial, model, *UNDER_WAY)
        can_predict = model.card.get("onnx", {}).get("sha256") is not None
    return render(
        request,
        "mistakes/without.html",
        **_head(request, session, trial, "show_pictures", {}),
        words=error.detail,
        prediction=prediction,
        can_predict=can_predict,
    )
