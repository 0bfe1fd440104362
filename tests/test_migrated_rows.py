"""What migrations make of the rows that are there."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from alembic import command
from sqlalchemy import MetaData, Table, delete, func, insert, inspect, select, text
from sqlalchemy.exc import DBAPIError

from app.accounts.callers import caller_by_cookie, caller_by_token, digest
from app.accounts.models import Invitation, Purpose, Scope
from app.accounts.service import is_proved
from app.campaigns.models import Campaign
from app.datasets.models import Dataset
from app.db import Base, Database
from app.members.models import WorkerLink
from app.migrate import alembic_config, upgrade

pytestmark = pytest.mark.dialects

ID = UUID(int=1).hex  # as SQLite keeps it; PostgreSQL takes it, too
AT = datetime(2026, 11, 21, tzinfo=UTC)
WHO = {"created_by_id": ID, "created_at": AT}
UNCLAIMED = {"claim_number": 0, "attempts": 0}
# Of the first schema, in an order in which each refers to those before.
FIRST_ROWS: dict[str, dict[str, object]] = {
    "user": {
        "id": ID,
        "email": "a@b.c",
        "name": "A",
        "role": "admin",
        "is_simulated": False,
        "created_at": AT,
    },
    "dataset": {"id": ID, "name": "D", "description": "", "state": "ready", "progress": 0, "train_count": 1}
    | {"test_count": 0, "size_bytes": 1}
    | WHO
    | UNCLAIMED,
    "example": {"id": 1, "dataset_id": ID, "position": 0, "split": "train", "shard": 0, "byte_offset": 0}
    | {"byte_length": 1, "digest": "d", "media_type": "image/png", "width": 1, "height": 1},
    "campaign": {"id": ID, "name": "C", "instructions": "", "dataset_id": ID, "state": "open"}
    | {"confirm_yes": True, "rounds": 1, "seed": "s", "question_count": 1}
    | WHO
    | UNCLAIMED,
    "campaign_class": {"campaign_id": ID, "position": 0, "name": "cat", "description": "", "example_ids": []}
    | {"question_count": 1},
    "question": {"id": 1, "campaign_id": ID, "example_id": 1, "round": 0, "candidate_class": 0}
    | {"probability": 1.0, "purpose": "labelling", "rank": 0, "slots": 1, "is_waiting": False},
    "answer": {"id": 1, "question_id": 1, "user_id": ID, "value": "yes", "key": ID, "created_at": AT},
    "lease": {"id": 1, "question_id": 1, "slot": 0, "user_id": ID, "turn": 1},
}


def test_upgrades_keep_what_is_there(empty: Database) -> None:
    config = alembic_config()
    with empty.engine.connect() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")
        schema = MetaData()
        schema.reflect(connection)
        for name, values in FIRST_ROWS.items():
            connection.execute(insert(schema.tables[name]), values)
        connection.commit()

        command.upgrade(config, "head")

        for name in FIRST_ROWS:
            count = connection.scalar(select(func.count()).select_from(schema.tables[name]))
            assert count == 1, f"the row of {name} is gone"


def test_datasets_that_are_there_are_counted_by_class(empty: Database) -> None:
    config = alembic_config()
    with empty.engine.connect() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0010")
        schema = MetaData()
        schema.reflect(connection)
        dataset, example = (schema.tables[name] for name in ("dataset", "example"))
        connection.execute(insert(schema.tables["user"]), FIRST_ROWS["user"])
        for name, class_names in (("A", ["x", "y", "z"]), ("B", None), ("C", ["x"])):
            id_ = UUID(int=ord(name)).hex
            state = "importing" if name == "C" else "ready"
            values = {"id": id_, "name": name, "state": state, "class_names": class_names}
            connection.execute(insert(dataset), FIRST_ROWS["dataset"] | values)
            labels = ["train", "train", "test"], [0, 2, 2] if name == "A" else [None] * 3
            for position, (split, label) in enumerate(zip(*labels, strict=True)):
                at = {"id": 10 * ord(name) + position, "dataset_id": id_, "position": position}
                row = FIRST_ROWS["example"] | at | {"split": split, "true_class": label}
                connection.execute(insert(example), row)
        connection.commit()

        command.upgrade(config, "head")

    with empty.read() as session:
        found = {item.name: (item.train_per_class, item.test_per_class) for item in session.query(Dataset)}
    assert found == {"A": ([1, 0, 1], [0, 0, 1]), "B": ([], []), "C": (None, None)}


def test_estimates_of_epochs_stay_and_a_trials_own_comes_back_from_its_last_one(empty: Database) -> None:
    config = alembic_config()
    rows: dict[str, list[dict[str, object]]] = {
        name: [FIRST_ROWS[name]] for name in ("user", "dataset", "campaign")
    }
    run = {"id": ID, "number": 1, "campaign_id": ID, "target_dataset_id": ID, "method": "m", "setting": "cc"}
    rows["run"] = [run | {"preset": "p", "config": {}, "snapshot_digest": "d", "snapshot_facts": {}} | WHO]
    trial = {"id": ID, "run_id": ID, "seed": 0, "state": "running", "queued_at": AT}
    rows["trial"] = [trial | {"source_accuracy_estimate": 0.7} | UNCLAIMED]
    metric = {"trial_id": ID, "epochs": 2, "step": 1, "seconds": 1.0, "losses": {}, "recorded_at": AT}
    rows["metric"] = [
        metric | {"id": epoch, "epoch": epoch, "source_accuracy_estimate": estimate}
        for epoch, estimate in ((1, -0.5), (2, 0.7))
    ]
    with empty.engine.connect() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0013")
        schema = MetaData()
        schema.reflect(connection)
        for name, values in rows.items():
            connection.execute(insert(schema.tables[name]), values)
        connection.commit()

        command.upgrade(config, "0042")
        connection.execute(text("UPDATE metric SET learning_rate = epoch / 4.0"))
        command.upgrade(config, "head")
        last = connection.scalar(select(Base.metadata.tables["trial"].c.last_metric))
        kept = connection.execute(
            select(schema.tables["metric"].c.source_accuracy_estimate).order_by("id")
        ).scalars()
        assert kept.all() == [-0.5, 0.7]
        assert last is not None
        assert (last["epoch"], last["source_accuracy_estimate"]) == (2, 0.7)
        assert (last["learning_rate"], last["pseudo_label_share"]) == (0.5, None)
        assert last["recorded_at"] == AT.isoformat()
        connection.commit()
        command.downgrade(config, "0013")

        assert connection.scalar(select(schema.tables["trial"].c.source_accuracy_estimate)) == 0.7


def test_presets_for_digits_are_called_so_and_back(empty: Database) -> None:
    config = alembic_config()
    presets = {
        ("clarinet-plus", "default"): "digits",
        ("clarinet-plus", "quick"): "digits-quick",
        ("gac+mcc", "default"): "digits",
        ("clarinet", "short"): "short",
    }
    with empty.engine.connect() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0013")
        schema = MetaData()
        schema.reflect(connection)
        for name in ("user", "dataset", "campaign"):
            row = {
                column: value for column, value in FIRST_ROWS[name].items() if column in schema.tables[name].c
            }
            connection.execute(insert(schema.tables[name]), row)
        run = schema.tables["run"]
        for number, (method, preset) in enumerate(presets, start=1):
            row = {"id": UUID(int=number).hex, "number": number, "method": method, "preset": preset}
            row |= {"campaign_id": ID, "target_dataset_id": ID, "setting": "cc", "config": {}}
            connection.execute(insert(run), row | {"snapshot_digest": "d", "snapshot_facts": {}} | WHO)
        connection.commit()

        command.upgrade(config, "head")
        connection.commit()
        kept = select(run.c.preset).order_by(run.c.number)
        now = list(connection.scalars(kept))
        command.downgrade(config, "0013")
        then = list(connection.scalars(kept))

    assert now == list(presets.values())
    assert then == [preset for _, preset in presets]


def test_tokens_sessions_and_links_that_are_there_go_on(empty: Database) -> None:
    config = alembic_config()
    now = datetime.now(UTC)
    rows: dict[str, list[dict[str, object]]] = {"user": [FIRST_ROWS["user"]]}
    rows["session"] = [{"id_hash": digest("cookie"), "user_id": ID, "created_at": AT}]
    rows["session"][0]["expires_at"] = now + timedelta(days=3)
    rows["api_token"] = [
        {"id": ID, "user_id": ID, "name": "t", "token_hash": digest("token"), "created_at": AT}
    ]
    link = {"role": "admin", "created_at": AT, "expires_at": now + timedelta(days=3)}
    rows["invitation"] = [
        link | {"id": UUID(int=n).hex, "token_hash": digest(f"link {n}"), "note": note, "invited_by_id": by}
        for n, (note, by) in enumerate([("", None), ("Grace", None), ("", ID)])
    ]
    with empty.engine.connect() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0017")
        schema = MetaData()
        schema.reflect(connection)
        for name, values in rows.items():
            connection.execute(insert(schema.tables[name]), values)
        connection.commit()

        command.upgrade(config, "head")

    with empty.read() as session:
        by_token = caller_by_token(session, "token", now=now + timedelta(days=89))
        assert by_token is not None
        assert by_token.scope is Scope.MANAGE
        assert by_token.user.is_admin
        assert caller_by_token(session, "token", now=now + timedelta(days=91)) is None
        idle_since = now - timedelta(minutes=1)
        assert caller_by_cookie(session, "cookie", now=now, idle_since=idle_since)
        assert not is_proved(session, "cookie", now=now)
        purposes = session.scalars(select(Invitation.purpose).order_by(Invitation.id)).all()
        assert purposes == [Purpose.FIRST_ADMIN, Purpose.ACCOUNT, Purpose.ACCOUNT]
        session.rollback()
    with empty.engine.connect() as connection:
        config.attributes["connection"] = connection
        command.downgrade(config, "0017")
        for name, given in rows.items():
            count = connection.scalar(select(func.count()).select_from(schema.tables[name]))
            assert count == len(given), name


@pytest.mark.parametrize(
    ("before", "after", "action"),
    [
        ("0007", "0008", "answers-downloaded"),
        ("0013", "0014", "run-changed"),
        ("0020", "0021", "role-changed"),
        ("0024", "0025", "person-erased"),
        ("0032", "0033", "images-added"),
    ],
)
def test_the_journal_stays_what_it_was_when_it_learns_new_actions(
    empty: Database, before: str, after: str, action: str
) -> None:
    config = alembic_config()
    entry = {"at": AT, "details": {}, "by_id": None, "campaign_id": None}
    with empty.engine.connect() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, before)
        journal = Table("journal_entry", MetaData(), autoload_with=connection)
        connection.execute(insert(journal), [entry | {"id": 7, "action": "run-started"}])
        connection.commit()

        command.upgrade(config, after)
        connection.execute(insert(journal), [entry | {"id": 8, "action": action}])
        connection.commit()
        command.downgrade(config, before)  # the actions of old can be kept, others not

        assert connection.execute(select(journal.c.id, journal.c.action)).all() == [(7, "run-started")]
        connection.commit()
        for statement in (delete(journal), insert(journal).values(entry | {"action": action})):
            with pytest.raises(DBAPIError), connection.begin():
                connection.execute(statement)


def test_reviewers_become_annotators_where_there_are_none(empty: Database) -> None:
    config = alembic_config()
    with empty.engine.connect() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0025")
        user = Table("user", MetaData(), autoload_with=connection)
        connection.execute(insert(user), FIRST_ROWS["user"] | {"role": "reviewer"})
        connection.commit()
        other = FIRST_ROWS["user"] | {"id": UUID(int=2).hex, "email": "b@b.c"}
        with pytest.raises(DBAPIError), connection.begin():
            connection.execute(insert(user), other | {"role": "owner"})

        command.downgrade(config, "0024")

        assert connection.scalars(select(user.c.role)).all() == ["annotator"]
        connection.commit()
        with pytest.raises(DBAPIError), connection.begin():
            connection.execute(insert(user), other | {"role": "reviewer"})


def test_what_judges_predictions_never_becomes_labels_on_the_way_down(empty: Database) -> None:
    config = alembic_config()
    with empty.engine.connect() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0045")
        schema = MetaData()
        schema.reflect(connection)
        rows = {name: dict(FIRST_ROWS[name]) for name in ("user", "dataset", "campaign")}
        rows["campaign"] |= {"kind": "evaluation"}
        for name, values in rows.items():
            connection.execute(insert(schema.tables[name]), values)
        connection.commit()

        with pytest.raises(RuntimeError, match="Close and delete these campaigns first"):
            command.downgrade(config, "0044")
        connection.rollback()
        assert connection.scalar(select(schema.tables["campaign"].c.kind)) == "evaluation"

        connection.execute(delete(schema.tables["campaign"]))
        connection.commit()
        command.downgrade(config, "0044")
        assert "evaluation" not in inspect(connection).get_table_names()


def test_the_version_before_opens_no_evaluation(empty: Database) -> None:
    """0.1.0 asks for an opening by the first of these, and its workers find it by the second."""
    ask = text("UPDATE campaign SET opening_requested_at = :at WHERE id = :id")
    find = text("SELECT name FROM campaign WHERE state = 'draft' AND opening_requested_at IS NOT NULL")
    upgrade(empty.engine, "0058")
    with empty.engine.begin() as connection:
        schema = MetaData()
        schema.reflect(connection)
        rows: dict[str, list[dict[str, Any]]] = {name: [FIRST_ROWS[name]] for name in ("user", "dataset")}
        kinds = {"C": "labelling", "E": "evaluation", "asked": "evaluation"}
        rows["campaign"] = [
            FIRST_ROWS["campaign"]
            | {"id": UUID(int=number).hex, "name": name, "kind": kind, "state": "draft"}
            | {"opening_requested_at": AT if name == "asked" else None}
            for number, (name, kind) in enumerate(kinds.items())
        ]
        for name, values in rows.items():
            for row in values:
                known = {column: value for column, value in row.items() if column in schema.tables[name].c}
                connection.execute(insert(schema.tables[name]), known)
    upgrade(empty.engine)

    with empty.engine.begin() as connection:
        connection.execute(ask, {"at": "2026-11-21 00:00:00.000000", "id": rows["campaign"][0]["id"]})
        assert connection.scalars(find).all() == ["C"]
    with pytest.raises(DBAPIError), empty.engine.begin() as connection:
        connection.execute(ask, {"at": "2026-11-21 00:00:00.000000", "id": rows["campaign"][1]["id"]})
    with empty.read() as session:
        found = session.query(Campaign).order_by(Campaign.name)
        assert {item.name: item.is_opening for item in found} == {"C": True, "E": False, "asked": True}


def test_links_of_who_is_no_admin_end(empty: Database) -> None:
    config = alembic_config()
    first = FIRST_ROWS["user"]
    people: dict[str, dict[str, object]] = {
        "admin": {},
        "reviewer": {"role": "reviewer"},
        "disabled": {"disabled_at": AT},
    }
    ids = {name: UUID(int=n).hex for n, name in enumerate(people, 1)}
    with empty.engine.connect() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0076")
        schema = MetaData()
        schema.reflect(connection)
        fill = {name: schema.tables[name] for name in ("user", "dataset", "campaign", "worker_link")}
        for name, changed in people.items():
            row = first | {"id": ids[name], "email": name} | changed
            connection.execute(insert(fill["user"]), row)
        connection.execute(insert(fill["dataset"]), FIRST_ROWS["dataset"])
        connection.execute(insert(fill["campaign"]), FIRST_ROWS["campaign"])
        for name, id_ in ids.items():
            link = {"id": id_, "campaign_id": ID, "token_hash": name, "note": name, "code": "C", "workers": 0}
            link |= {"answers_needed": 1, "max_workers": 1, "created_by_id": id_, "created_at": AT}
            connection.execute(insert(fill["worker_link"]), link)
        connection.commit()

        command.upgrade(config, "head")

    with empty.read() as session:
        ended = session.scalars(select(WorkerLink.note).where(WorkerLink.ended_at.is_not(None)))
        assert set(ended) == {"reviewer", "disabled"}
