"""JSON routes."""

from fastapi import APIRouter

router = APIRouter(tags=["registry"])
