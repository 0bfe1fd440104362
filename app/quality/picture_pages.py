"""HTML route of one picture of a dataset."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response

from app.access import reviewers_too
from app.datasets.models import Split
from app.deps import CurrentUser, SessionDep
from app.pages import render, with_query
from app.quality import service

router = APIRouter(include_in_schema=False)


@router.get("/datasets/{dataset_id}/pictures/{example_id}")
@reviewers_too
def show_dataset_picture(
    *,
    request: Request,
    dataset_id: UUID,
    example_id: Annotated[int, Path(ge=1, le=2**63 - 1)],
    user: CurrentUser,
    session: SessionDep,
    after: Annotated[int, Query(ge=-1, le=2**31 - 1)] = -1,
    split: Split | str = "",
    true_class: Annotated[str, Query(pattern=r"^\d{0,6}$")] = "",
) -> Response:
    """One picture, large, and the way to those beside it on the contact sheet from which it was opened.

    True classes are for admins alone: what a reviewer settles becomes a label.
    """
    chosen = Split(split) if split in set(Split) else None
    label = int(true_class) if true_class and user.is_admin else None
    shown = service.picture(session, dataset_id, example_id, by=user, split=chosen, true_class=label)
    among = {
        "after": after,
        "split": chosen.value if chosen else "",
        "true_class": "" if label is None else label,
    }
    at = {"dataset_id": str(dataset_id)}
    before, behind = (
        None
        if id_ is None
        else with_query(request, "show_dataset_picture", path={**at, "example_id": str(id_)}, **among)
        for id_ in (shown.before, shown.behind)
    )
    sheet = with_query(request, "show_dataset", path=at, **among)
    return render(
        request,
        "datasets/picture.html",
        dataset=shown.dataset,
        example=shown.example,
        asked=shown.asked,
        before=before,
        behind=behind,
        back=sheet.replace(fragment=f"image-{example_id}") if user.is_admin else None,
    )
