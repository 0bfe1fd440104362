"""Databases, a queue, a client that talks to the real application, and a publisher that remembers."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
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
from app.storage import Storage
from tests.factories import make_token, make_user

# One thread per training, before torch is loaded: the tests share few cores, and more threads only wait for
# each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")

POSTGRES = os.environ.get("CLARINET_TEST_POSTGRES", "postgresql+psycopg://postgres@127.0.0.1:5432/postgres")
REDIS = os.environ.get("CLARINET_TEST_REDIS", "redis://127.0.0.1:6379")  # without a database
SERVICES_REQUIRED = os.environ.get("CLARINET_REQUIRE_SERVICES") == "1"
_ROUTES: list[BaseRoute] = []


@pytest.hookimpl(tryfirst=True)  # before the plugin that deals the groups out to processes
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
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


@pytest.fixture(autouse=True)
def _logs_of_its_own() -> None:
    """Whatever a test made of the logs ends with it: they may write to what captured its output."""
    configure_logs(Settings(environment="test", _env_file=None))


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


@pytest.fixture(scope="session", params=["sqlite", "postgresql"])
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """Each supported database, with its tables."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path_factory.mktemp('db') / 'test.db'}"
    else:
        url = request.getfixturevalue("postgres_url")
    database = connect(url)
    Base.metadata.create_all(database.engine)
    yield database
    database.dispose()


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
    return Settings(environment="test", data_dir=tmp_path, _env_file=None)


@pytest.fixture
def storage(settings: Settings) -> Storage:
    """Where the application under test keeps artefacts."""
    return Storage(settings.artefact_dir)


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
