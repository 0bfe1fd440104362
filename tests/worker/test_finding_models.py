"""Which model a shell's words mean."""

from collections.abc import Iterator
from typing import Any

import pytest

from app.errors import AppError
from clarinet_client import Client
from tests.receiving import Receiver, Reply
from worker.cli.models import find_model


@pytest.fixture
def server() -> Iterator[Receiver]:
    server = Receiver()
    yield server
    server.close()


def listed(*rows: dict[str, Any]) -> Reply:
    """A page of models."""
    return 200, {"items": list(rows), "next": None}, {}


def model(version: int, **more: Any) -> dict[str, Any]:
    return {"id": f"m{version}", "version": version, "archived_at": None} | more


def test_a_name_with_an_alias_means_its_version_and_a_name_alone_the_newest_that_is_not_archived(
    server: Receiver,
) -> None:
    old, new, gone = model(1), model(2), model(3, archived_at="2026-05-01T12:00:00Z")
    nothing = listed()
    with Client(server.url, "t") as client:
        server.will(listed(old))
        assert find_model(client, "Shop@production")["id"] == "m1"
        server.will(listed(new, old), listed(gone))
        assert find_model(client, "Shop")["id"] == "m2"
        server.will(nothing, listed(gone))
        assert find_model(client, "Shop")["id"] == "m3"
        server.will(nothing, listed(new), nothing)  # a name may have that sign in it
        assert find_model(client, "me@home")["id"] == "m2"
        server.will(nothing)
        with pytest.raises(AppError, match=r"'Nothing' is no model: .* as in Shop@production"):
            find_model(client, "Nothing")

    assert [one.path.partition("?")[2] for one in server.asked] == [
        "name=Shop&alias=production",
        *("name=Shop", "name=Shop&archived=true") * 2,
        *("name=me&alias=home", "name=me%40home", "name=me%40home&archived=true"),
        *("name=Nothing", "name=Nothing&archived=true"),
    ]
