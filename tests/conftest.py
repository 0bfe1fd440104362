"""Databases, a queue, a client that talks to the real application, and a publisher that remembers."""

import atexit
import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from argon2 import PasswordHasher
from fastapi import FastAPI
from fastapi.testclient import TestClient
from redis import Redis
from redis.exceptions import RedisError
from sqlalchemy import Connection, create_engine, text
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session, sessionmaker
from starlette.routing import BaseRoute

from app.accounts import passwords
from app.accounts.models import User
from app.db import Base, Database, connect
from app.jobs import Job
from app.logs import configure_logs
from app.main import create_app
from app.settings import Settings
from app.stores.folder import FolderStorage
from tests.buckets import FaultyS3, s3_server
from tests.factories import make_token, make_user

# One thread per training, before torch is loaded: the tests share few cores, and more threads only wait for
# each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")

POSTGRES = os.environ.get("CLARINET_TEST_POSTGRES", "postgresql+psycopg://postgres@127.0.0.1:5432/postgres")
REDIS = os.environ.get("CLARINET_TEST_REDIS", "redis://127.0.0.1:6379")  # without a database
LONGEST_NAME = 40  # bytes
WAITING = ("browser", "faults")  # marks of tests whose processes have idle processors
SERVICES_REQUIRED = os.environ.get("CLARINET_REQUIRE_SERVICES") == "1"
_ROUTES: list[BaseRoute] = []
gc.disable()  # until the tests are collected: nothing of what that loads and makes is garbage


@pytest.hookimpl(wrapper=True, tryfirst=True)  # marks before, order after what plugins do
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Iterator[None]:
    """Keep in one process what shares something slow: a file, or all that the browser does with one
    installation. Mark what `make check` leaves out.
    """
    for item in items:
        case = getattr(item, "callspec", None)
        params = case.params if case else {}
        group = params.get("live")
        item.add_marker(pytest.mark.xdist_group(str(item.path.parent / (group or item.path.stem))))
        on_postgresql = any(isinstance(value, str) and value == "postgresql" for value in params.values())
        if on_postgresql and not item.get_closest_marker("dialects"):
            item.add_marker("again")
        long = item.get_closest_marker("long")
        if long and case and case.id in long.kwargs.get("but", []):
            item.add_marker("sample")
    yield
    _deal_out(items)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """What is there now stays to the end: no collection of garbage need look at it again."""
    yield
    gc.freeze()
    gc.enable()
    atexit.register(gc.unfreeze)  # else packages take all of it for leaks, and say so


def _deal_out(items: list[pytest.Item]) -> None:
    """Put the groups into the order in which processes take them: large before small, and those that mostly
    wait (for a browser, or for processes that are killed) evenly over the first of them. So no process waits
    alone at the end, and never all of them at once.
    """
    groups: dict[str, list[pytest.Item]] = {}
    for item in items:
        groups.setdefault(next(item.iter_markers("xdist_group")).args[0], []).append(item)
    large_first = sorted(groups.values(), key=len, reverse=True)
    waits = [
        group
        for group in large_first
        if any(item.get_closest_marker(name) for name in WAITING for item in group)
    ]
    works = [group for group in large_first if group not in waits]
    places = [(0.6 * place / len(waits), group) for place, group in enumerate(waits)]
    places += [(place / len(works), group) for place, group in enumerate(works)]
    items[:] = [item for _, group in sorted(places, key=lambda found: found[0]) for item in group]


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """A file is called by its argument: an archive has the time in it, and processes compare names."""
    return argname if isinstance(val, bytes) and len(val) > LONGEST_NAME else None


@contextmanager
def postgres_database() -> Iterator[str]:
    """A new, empty database on the PostgreSQL server, dropped at the end; skips where none answers."""
    admin = create_engine(POSTGRES, isolation_level="AUTOCOMMIT")
    name = f"clarinet_test_{uuid4().hex[:12]}"
    try:
        with admin.connect() as connection:
            connection.execute(text(f"CREATE DATABASE {name}"))
    except OperationalError:
        if SERVICES_REQUIRED:
            raise
        pytest.skip("no PostgreSQL answers (CLARINET_TEST_POSTGRES)")
    yield admin.url.set(database=name).render_as_string(hide_password=False)
    with admin.connect() as connection:
        connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
    admin.dispose()


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A database of the tests' own, with whatever tables they make."""
    with postgres_database() as url:
        yield url


@pytest.fixture(scope="session", autouse=True)
def _passwords_are_hashed_in_no_time() -> None:
    """A hash that is as slow as it should be takes longer than most tests."""
    passwords._hasher = PasswordHasher(memory_cost=8, time_cost=1, parallelism=1)


@pytest.fixture(scope="session", autouse=True)
def _no_disk_is_waited_for() -> Iterator[None]:
    """No test cuts the power, so what one process has written is there for the next; slow disks take long."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


@cache
def _settings() -> Settings:
    """Read once: to look for each field in the environment takes longer than many tests."""
    return Settings(environment="test", _env_file=None)


@pytest.fixture(autouse=True)
def _logs_of_its_own() -> None:
    """Whatever a test made of the logs ends with it: they may write to what captured its output."""
    configure_logs(_settings())


@pytest.fixture(scope="session")
def s3() -> Iterator[int]:
    """The port of an S3 server of the tests' own."""
    with s3_server() as port:
        yield port


@pytest.fixture
def faulty(s3: int) -> Iterator[FaultyS3]:
    """A proxy before it, which breaks what a test says."""
    proxy = FaultyS3(s3)
    yield proxy
    proxy.close()


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """A Redis database of this process's own, emptied before and after; skips where no server answers."""
    if urlsplit(REDIS).path.strip("/"):
        pytest.fail("CLARINET_TEST_REDIS names a server without a database: the tests take several of them")
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    url = f"{REDIS}/{15 - number % 16}"  # a server has sixteen
    with Redis.from_url(url) as client:
        try:
            client.flushdb()
        except RedisError:
            if SERVICES_REQUIRED:
                raise
            pytest.skip("no Redis answers (CLARINET_TEST_REDIS)")
        yield url
        client.flushdb()


@pytest.fixture(scope="session")
def sqlite_engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """A file with tables, for as long as its process."""
    yield from _with_tables(f"sqlite:///{tmp_path_factory.mktemp('db') / 'test.db'}")


@pytest.fixture(scope="session")
def postgresql_engine(postgres_url: str) -> Iterator[Database]:
    """The same on a server."""
    yield from _with_tables(postgres_url)


def _with_tables(url: str) -> Iterator[Database]:
    database = connect(url)
    Base.metadata.create_all(database.engine)
    yield database
    database.dispose()


@pytest.fixture(params=["sqlite", "postgresql"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A database without a table."""
    if request.param == "sqlite":
        database = connect(f"sqlite:///{tmp_path / 'empty.db'}")
        yield database
        database.dispose()
        return
    with postgres_database() as url:
        database = connect(url)
        yield database
        database.dispose()


@pytest.fixture(params=["sqlite", "postgresql"])
def engine(request: pytest.FixtureRequest) -> Database:
    """Each supported database, with its tables."""
    found: Database = request.getfixturevalue(f"{request.param}_engine")
    return found


@pytest.fixture
def connection(engine: Database) -> Iterator[Connection]:
    """One outer transaction per test, rolled back at its end."""
    with engine.engine.connect() as connection:
        outer = connection.begin()
        yield connection
        outer.rollback()


@pytest.fixture
def database(connection: Connection, engine: Database) -> Database:
    """What the code under test gets: it commits to a savepoint and cannot tell."""
    maker = sessionmaker(connection, expire_on_commit=False, join_transaction_mode="create_savepoint")
    return Database(read=maker, write=maker, engine=engine.engine)


@pytest.fixture
def session(database: Database) -> Iterator[Session]:
    """A session for arranging and asserting."""
    with database.write() as session:
        yield session


@pytest.fixture
def published() -> list[Job]:
    """The jobs that were published, in order."""
    return []


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings of a process that keeps everything in the test's folder."""
    return _settings().model_copy(update={"data_dir": tmp_path})


@pytest.fixture
def storage(settings: Settings) -> FolderStorage:
    """Where the application under test keeps artefacts."""
    return FolderStorage(settings.artefact_dir)


@pytest.fixture
def app(settings: Settings, database: Database, published: list[Job]) -> FastAPI:
    """The whole application."""
    app = create_app(settings, database=database, publish=published.append)
    # FastAPI works out what each route takes at an application's first request, which takes longer than most
    # tests: they hand on what the first of them worked out.
    if not _ROUTES:
        _ROUTES.extend(app.router.routes)
    app.router.routes[:] = _ROUTES
    return app


@pytest.fixture
def anonymous(app: FastAPI) -> Iterator[TestClient]:
    """A client that is not signed in."""
    with TestClient(app, follow_redirects=False, raise_server_exceptions=False) as client:
        yield client


@pytest.fixture
def admin(session: Session) -> User:
    """An admin."""
    user = make_user(session, role="admin")
    session.commit()
    return user


@pytest.fixture
def annotator(session: Session) -> User:
    """An annotator."""
    user = make_user(session)
    session.commit()
    return user


@pytest.fixture
def client(app: FastAPI, session: Session, admin: User) -> Iterator[TestClient]:
    """A client with an admin's bearer token."""
    headers = {"Authorization": f"Bearer {make_token(session, admin)}"}
    with TestClient(app, headers=headers, follow_redirects=False, raise_server_exceptions=False) as client:
        yield client


@pytest.fixture
def annotator_client(app: FastAPI, session: Session, annotator: User) -> Iterator[TestClient]:
    """A client with an annotator's bearer token."""
    headers = {"Authorization": f"Bearer {make_token(session, annotator)}"}
    with TestClient(app, headers=headers, follow_redirects=False, raise_server_exceptions=False) as client:
        yield client
