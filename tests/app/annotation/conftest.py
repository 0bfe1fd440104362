"""What tests of answering share."""

import pytest

from app.annotation import service
from app.fast.answering import FAST
from tests import annotators


@pytest.fixture(params=[FAST, service.PLAIN], ids=["fast", "plain"])
def each_execution(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test says holds for both executions."""
    monkeypatch.setattr(annotators, "execution", request.param)
