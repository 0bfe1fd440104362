"""Passwords are hashed while nobody waits: no writer, and no connection of the database."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from app.accounts import passwords, people, service
from app.accounts.models import Role
from app.accounts.passwords import hash_password
from app.clock import utc_now
from app.db import Base, Database, connect
from app.main import create_app
from app.settings import Settings
from tests.app.accounts.conftest import Browser
from tests.factories import PASSWORD, make_user


def test_passwords_are_hashed_while_nobody_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On SQLite an open writing transaction keeps every other writer waiting."""
    database = connect(f"sqlite:///{tmp_path / 'own.db'}")
    Base.metadata.create_all(database.engine)
    with database.write.begin() as session:
        email = make_user(session, password=PASSWORD).email
        _, secret = service.invite(session, role=Role.ANNOTATOR, note="", by=None, now=utc_now())
    app = create_app(
        Settings(environment="test", data_dir=tmp_path, _env_file=None),
        database=database,
        publish=lambda _: None,
    )
    writers: list[int] = []

    def note(password: str) -> str:
        writers.append(database.engine.pool.checkedout())  # type: ignore[attr-defined]  # a QueuePool has it
        return hash_password(password)

    monkeypatch.setattr(people, "hash_password", note)
    browser, guest = (Browser(TestClient(app, follow_redirects=False)) for _ in range(2))
    browser.sign_in(email)
    changed = browser.send(
        "/account/password", page="/account", current=PASSWORD, password="another long one"
    )
    link = f"/invitations/{secret}"
    came = guest.send(link, page=link, name="Grace", email="grace@example.org", password=PASSWORD)
    database.dispose()

    assert (changed.status_code, came.status_code) == (303, 303)
    assert writers == [0, 0]


@pytest.mark.dialects
def test_waiting_for_a_password_holds_no_connection(
    committed: Database, committing_app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crowd that signs in waits for the hashing, and everybody else finds the database free."""
    with committed.write.begin() as session:
        user = make_user(session, password=PASSWORD)
        _, invitation = service.invite(session, role=Role.ANNOTATOR, note="", by=None, now=utc_now())
        _, other = service.make_password_link(session, make_user(session), by=None, now=utc_now())
    browser, guest, third, fourth = (
        Browser(TestClient(committing_app, follow_redirects=False)) for _ in range(4)
    )
    browser.sign_in(user.email)
    gate = threading.BoundedSemaphore(2)
    monkeypatch.setattr(passwords, "_gate", gate)  # where all wait
    for _ in range(2):
        gate.acquire()
    new = "another long one"
    link, to_password = f"/invitations/{invitation}", f"/password/{other}"
    acts = [
        partial(browser.send, "/account/tokens", page="/account", name="script", current=PASSWORD),
        partial(guest.sign_in, user.email),
        partial(third.send, link, page=link, name="Grace", email="grace@example.org", password=new),
        partial(fourth.send, to_password, page=to_password, password=new),
    ]
    with ThreadPoolExecutor(len(acts)) as pool:
        waiting = [pool.submit(act) for act in acts]
        time.sleep(1.0)

        pools = {maker.kw["bind"].pool for maker in (committed.read, committed.write)}
        held = [pool.checkedout() for pool in pools]
        done = [future.done() for future in waiting]
        for _ in range(2):
            gate.release()
        statuses = [future.result(30).status_code for future in waiting]

    assert held == [0] * len(pools)
    assert done == [False] * len(acts)
    assert statuses == [201, 303, 303, 303]
