"""A backup made while people answer comes back whole: every row, every file, and nothing half done."""

import hashlib
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from sqlalchemy import func, inspect, select, text
from typer.testing import CliRunner

from app.accounts.models import ApiToken
from app.annotation import service as annotation
from app.annotation.models import Answer, AnswerValue, Question, Tally
from app.campaigns.models import Campaign
from app.clock import utc_now
from app.db import Database, connect
from app.fast.answering import answer
from app.fast.leasing import lease
from app.journal.models import Action, Entry
from app.migrate import upgrade
from app.stores.folder import FolderStorage
from tests.conftest import postgres_database
from tests.factories import make_campaign, make_run, make_user
from worker.backup import copying, rows
from worker.backup.copying import BackupRefused
from worker.cli.main import app


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """Of an installation that is to be copied, with the schema that migrations make."""
    if request.param == "sqlite":
        yield from opened(f"sqlite:///{tmp_path / 'first.db'}")
        return
    with postgres_database() as url:
        yield from opened(url)


def opened(url: str) -> Iterator[Database]:
    database = connect(url)
    upgrade(database.engine)
    yield database
    database.dispose()


@pytest.fixture
def storage(tmp_path: Path) -> FolderStorage:
    return FolderStorage(tmp_path / "first")


@pytest.fixture
def campaign(database: Database, storage: FolderStorage) -> Campaign:
    """Something of everything that matters: people, images, labels, a run with its frozen labels."""
    with database.write.begin() as session:
        campaign = make_campaign(session, examples=40)
        make_run(session, storage)
        admin = make_user(session, role="admin")
        # One that was made with the other comes before it by its name.
        for id_, made_with in ((2**127, None), (1, UUID(int=2**127))):
            token = ApiToken(
                id=UUID(int=id_), user_id=admin.id, name="t", token_hash=str(id_), created_at=utc_now()
            )
            token.expires_at, token.made_with_id = utc_now(), made_with
            session.add(token)
            session.flush()
        session.add(Entry(action=Action.SIGNED_IN, at=utc_now(), details={"é": [1, None, 0.1]}))
    return campaign


def digests_of(database: Database) -> dict[str, str]:
    """By table what its rows are."""
    found = {}
    with database.read.begin() as session:
        for table in rows.tables():
            lines = sorted(map(repr, map(tuple, session.execute(select(table)))))
            found[table.name] = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    return found


def files_of(storage: FolderStorage) -> dict[str, bytes]:
    return {
        path.relative_to(storage.root).as_posix(): path.read_bytes()
        for path in storage.root.rglob("*")
        if path.is_file()
    }


def answer_on(database: Database, campaign: Campaign, stop: threading.Event, given: list[int]) -> None:
    """Answer one question after the other until it is enough."""
    with database.write.begin() as session:
        person = make_user(session)
    while not stop.is_set():
        with database.write.begin() as session:
            _, held = lease(session, campaign.id, count=1, by=person, now=utc_now())
            if not held.questions:
                return
            said = annotation.SubmittedAnswer(held.questions[0].id, AnswerValue.NO, 900, uuid4())
            answer(session, campaign.id, [said], count=0, by=person, now=utc_now())
        given.append(held.questions[0].id)


@pytest.mark.long
def test_what_is_copied_while_people_answer_comes_back(
    database: Database, storage: FolderStorage, campaign: Campaign, tmp_path: Path
) -> None:
    stop, given = threading.Event(), list[int]()
    people = [threading.Thread(target=answer_on, args=(database, campaign, stop, given)) for _ in range(2)]
    for person in people:
        person.start()
    while len(given) < 3:
        assert not stop.wait(0.01)
    before = len(given)
    moving = copying.backup(database, storage, tmp_path / "backups")
    stop.set()
    for person in people:
        person.join()
    quiet = copying.backup(database, storage, tmp_path / "backups")
    assert quiet.files == moving.files == len(files_of(storage)) > 0
    assert (quiet.copied, moving.copied > 0) == (0, True)  # a file only once

    with postgres_database() as other_url:
        for number, url in enumerate((f"sqlite:///{tmp_path / 'second.db'}", other_url)):
            second, folder = connect(url), FolderStorage(tmp_path / f"second-{number}")
            restored = copying.restore(second, folder, quiet.path)
            assert restored.rows == quiet.rows
            assert digests_of(second) == digests_of(database)
            assert files_of(folder) == files_of(storage)
            one_more = answered_by_somebody_new(second, campaign)
            assert one_more > max(given_ids(database))  # numbers go on behind those that came back
            second.dispose()

    third = connect(f"sqlite:///{tmp_path / 'third.db'}")
    copying.restore(third, FolderStorage(tmp_path / "third"), moving.path)
    with third.read.begin() as session:
        answers = session.scalar(select(func.count()).select_from(Answer)) or 0
        tallied = session.scalar(select(func.sum(Tally.no))) or 0
    third.dispose()
    assert before <= answers <= len(given)
    assert tallied == answers  # of one moment: no answer without what follows from it


def given_ids(database: Database) -> list[int]:
    with database.read.begin() as session:
        return list(session.scalars(select(Answer.id)))


def answered_by_somebody_new(database: Database, campaign: Campaign) -> int:
    """The number of the answer."""
    with database.write.begin() as session:
        campaign = session.get_one(Campaign, campaign.id)
        question = session.scalars(select(Question).where(Question.campaign_id == campaign.id)).first()
        assert question is not None
        given = Answer(
            question_id=question.id,
            user_id=make_user(session).id,
            value=AnswerValue.NO,
            key=uuid4(),
            created_at=utc_now(),
        )
        session.add(given)
        session.flush()
        return given.id


on_sqlite = pytest.mark.parametrize("database", ["sqlite"], indirect=True)


@on_sqlite
@pytest.mark.usefixtures("campaign")
class TestRefusals:
    def test_a_place_where_something_is(
        self, database: Database, storage: FolderStorage, tmp_path: Path
    ) -> None:
        made = copying.backup(database, storage, tmp_path / "backups")
        with pytest.raises(BackupRefused, match=r"files in .* already"):
            copying.restore(database, storage, made.path)
        with pytest.raises(BackupRefused, match="rows already"):
            copying.restore(database, FolderStorage(tmp_path / "new"), made.path)
        assert files_of(FolderStorage(tmp_path / "new")) == {}

    def test_a_damaged_backup(self, database: Database, storage: FolderStorage, tmp_path: Path) -> None:
        made = copying.backup(database, storage, tmp_path / "backups")
        other = connect(f"sqlite:///{tmp_path / 'other.db'}")
        for damaged in (
            next((tmp_path / "backups" / "files").glob("*/*")),
            made.path / "rows" / "user.jsonl.gz",
            made.path / "manifest.json",
        ):
            whole = damaged.read_bytes()
            damaged.write_bytes(whole[:-1])
            with pytest.raises(BackupRefused, match=r"is damaged|is no backup"):
                copying.restore(other, FolderStorage(tmp_path / "other"), made.path)
            damaged.write_bytes(whole)
        assert inspect(other.engine).get_table_names() == []
        other.dispose()

    def test_another_schema(self, database: Database, storage: FolderStorage, tmp_path: Path) -> None:
        made = copying.backup(database, storage, tmp_path / "backups")
        manifest = json.loads((made.path / "manifest.json").read_text())
        (made.path / "manifest.json").write_text(json.dumps(manifest | {"revision": "9999"}))
        other = connect(f"sqlite:///{tmp_path / 'other.db'}")
        with pytest.raises(BackupRefused, match="Restore it with that version"):
            copying.restore(other, FolderStorage(tmp_path / "other"), made.path)
        assert inspect(other.engine).get_table_names() == []  # so that the right version can restore it
        other.dispose()
        with database.engine.begin() as connection:
            connection.execute(text("UPDATE alembic_version SET version_num = '0013'"))
        with pytest.raises(BackupRefused, match="schema is older"):
            copying.backup(database, storage, tmp_path / "backups")


@on_sqlite
def test_a_file_that_the_backups_lost_is_copied_again(
    database: Database, storage: FolderStorage, tmp_path: Path
) -> None:
    target = tmp_path / "backups"
    storage.put("models/a", b"first")
    copying.backup(database, storage, target)
    next((target / "files").glob("*/*")).unlink()

    again = copying.backup(database, storage, target)

    assert again.copied == 1
    other = connect(f"sqlite:///{tmp_path / 'other.db'}")
    copying.restore(other, FolderStorage(tmp_path / "other"), again.path)
    other.dispose()
    assert files_of(FolderStorage(tmp_path / "other")) == {"models/a": b"first"}


@on_sqlite
def test_one_backup_at_a_time_and_none_into_what_it_copies(
    database: Database, storage: FolderStorage, tmp_path: Path
) -> None:
    target = tmp_path / "backups"
    copying.backup(database, storage, target)
    with copying._alone(target), pytest.raises(BackupRefused, match="Another backup"):
        copying.backup(database, storage, target)
    with pytest.raises(BackupRefused, match="is inside"):
        copying.backup(database, storage, storage.root / "backups")


@on_sqlite
def test_only_the_newest_are_kept_with_their_files(
    database: Database, storage: FolderStorage, tmp_path: Path
) -> None:
    target = tmp_path / "backups"
    storage.put("models/a", b"first")
    copying.backup(database, storage, target)
    storage.delete_tree("models")
    storage.put("models/b", b"second")
    kept = copying.backup(database, storage, target, keep=1)

    assert copying.backups(target) == [kept.path]
    assert [path.read_bytes() for path in (target / "files").glob("*/*")] == [b"second"]
    assert [path.name for path in target.iterdir() if path.name.startswith(".new-")] == []


def test_by_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CLARINET_DATABASE_URL", raising=False)
    monkeypatch.setenv("CLARINET_DATA_DIR", str(tmp_path / "one"))
    run = CliRunner()
    assert run.invoke(app, ["db", "upgrade"]).exit_code == 0
    made = run.invoke(app, ["backup", "backups"])
    [path] = copying.backups(tmp_path / "backups")
    again = run.invoke(app, ["restore", str(path)])
    monkeypatch.setenv("CLARINET_DATA_DIR", str(tmp_path / "two"))
    back = run.invoke(app, ["restore", str(path)])
    nothing = run.invoke(app, ["restore", "nowhere"])

    assert "0 rows, 0 files" in made.stdout
    assert again.exit_code == 0  # nothing was there yet
    assert back.stdout.startswith("Restored 0 rows")
    assert (nothing.exit_code, "is no backup" in nothing.stderr) == (1, True)
