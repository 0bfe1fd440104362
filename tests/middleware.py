"""What an application is wrapped in."""

from typing import Any, TypeVar

from fastapi import FastAPI

Layer = TypeVar("Layer")


def part_of(app: FastAPI, kind: type[Layer]) -> Layer:
    """The layer of this kind; the application has served a request, which is when they are put together."""
    layer: Any = app.middleware_stack
    while not isinstance(layer, kind):
        layer = layer.app
    return layer
