"""Addresses of pictures."""

from collections.abc import Callable
from uuid import UUID

from fastapi import Request

from app.pages import path_pattern

PLACE = "{example_id}"


def image_address(request: Request, dataset_id: UUID) -> str:
    """Where a dataset's pictures lie, with PLACE in place of the example's id."""
    pattern = path_pattern(request, "example_image", "dataset_id", "example_id")
    return pattern.replace("{dataset_id}", str(dataset_id))


def image_addresses(request: Request, dataset_id: UUID) -> Callable[[int], str]:
    """The address of each picture of a dataset, by its example's id."""
    before, after = image_address(request, dataset_id).split(PLACE)
    return lambda example_id: f"{before}{example_id}{after}"
