"""Statements that are compiled once, for what runs with every answer; several of them in one round trip."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from sqlalchemy import (
    BindParameter,
    ClauseElement,
    Connection,
    text,
)
from sqlalchemy.orm import Session

from app.fast.compiling import Compiled, Rows, Values, compiled_for, driver_of, errors_of
from app.fast.pipelines import Failed, Pipeline

Row = TypeVar("Row")


class Prepared(Generic[Row]):
    """A statement, or one for each dialect. Values are given by name, all that it has."""

    def __init__(
        self,
        row: Callable[[tuple[Any, ...]], Row],
        statement: ClauseElement | Mapping[str, ClauseElement],
    ) -> None:
        """
        Args:
            row: makes what is given of a row's typed values.
            statement: the same for both dialects, or by dialect.
        """
        self.row = row
        self._statement = statement
        self._compiled: dict[str, Compiled] = {}

    def bind(self, **values: object) -> "Bound[Row]":
        """It with these values, to be run with others."""
        return Bound(self, values)

    def run(self, session: Session, **values: object) -> list[Row]:
        """Run it in the session's transaction; gives its rows."""
        bound = self.bind(**values)
        return run_all(session, bound).of(bound)

    def sendable(self, values: Values) -> Values:
        """Values as PostgreSQL is sent them."""
        return values

    def run_on(self, connection: Connection, values: Values) -> Rows:
        """Run it on SQLite."""
        compiled = self.compiled(connection)
        with errors_of(connection, compiled.sql):
            cursor = driver_of(connection).execute(compiled.sql, compiled.bound(values))
            if cursor.description is None:
                return []
            rows = cursor.fetchall()
        return compiled.converted(rows, [column[1] for column in cursor.description], connection.dialect)

    def run_on_each(self, connection: Connection, rows: Sequence[Values]) -> None:
        """Run it on SQLite with each of several sets of values."""
        compiled = self.compiled(connection)
        with errors_of(connection, compiled.sql):
            driver_of(connection).cursor().executemany(compiled.sql, [compiled.bound(row) for row in rows])

    def compiled(self, connection: Connection) -> Compiled:
        """Its text for a connection's dialect."""
        name = connection.dialect.name
        if name in self._compiled:
            return self._compiled[name]
        statement = self._statement[name] if isinstance(self._statement, Mapping) else self._statement
        return self._compiled.setdefault(name, compiled_for(name, statement))


@dataclass(frozen=True, slots=True, eq=False)
class Bound(Generic[Row]):
    """A statement with values for all that it has."""

    statement: "Prepared[Row] | RowWrites"
    values: Values


class Results:
    """What several statements gave."""

    def __init__(self, rows: Mapping[Bound[Any], Rows]) -> None:
        self._rows = rows

    def of(self, bound: Bound[Row]) -> list[Row]:
        """The rows of one of them."""
        return list(map(cast("Prepared[Row]", bound.statement).row, self._rows[bound]))


def run_all(session: Session, *statements: Bound[Any]) -> Results:
    """Run several statements in the session's transaction, one after the other.

    On PostgreSQL in one round trip; each still sees what was committed while those before it waited.
    """
    if not statements:
        return Results({})
    session.flush()  # as Session.execute does
    connection = session.connection()
    if connection.dialect.name == "postgresql":
        found = _in_one_round_trip(connection, statements)
    else:
        found = [item.statement.run_on(connection, item.values) for item in statements]
    return Results(dict(zip(statements, found, strict=True)))


def _in_one_round_trip(connection: Connection, statements: Sequence[Bound[Any]]) -> list[Rows]:
    compiled = [item.statement.compiled(connection) for item in statements]
    sent = [
        one.sent(item.statement.sendable(item.values)) for one, item in zip(compiled, statements, strict=True)
    ]
    pipeline = connection.info.get("pipeline")
    if pipeline is None:
        pipeline = connection.info["pipeline"] = Pipeline(driver_of(connection))
    try:
        with errors_of(connection, "; ".join(one.sql for one in compiled)):
            found = pipeline.send(sent)
    except Failed as error:
        with errors_of(connection, compiled[error.place].sql):
            raise error.why from None
    return [
        one.converted(item.rows, item.type_codes, connection.dialect)
        for one, item in zip(compiled, found, strict=True)
    ]


class RowWrites:
    """Statements over the same rows of values, in SQL a table; PostgreSQL runs all of them as one.

    So none may need what another of them changes.
    """

    def __init__(
        self,
        columns: Mapping[str, str],
        statements: Sequence[str],
        *,
        table: str,
        common: Sequence[BindParameter[Any]],
    ) -> None:
        """
        Args:
            columns: of the table, with their types on PostgreSQL.
            statements: each begins with its verb.
            table: its name in them.
            common: values that all rows share, in the statements as `:name`.
        """
        typed = ", ".join(f"{name} {type_}" for name, type_ in columns.items())
        begin = f"WITH {table} AS (SELECT * FROM json_to_recordset(CAST(:rows AS json)) AS row ({typed}))"
        steps = [f"step_{place} AS ({statement})" for place, statement in enumerate(statements)]
        self._chain = _prepared(", ".join([begin, *steps]) + " SELECT 1", common)
        values = ", ".join(f":{name}" for name in columns)
        one_row = f"WITH {table} ({', '.join(columns)}) AS (VALUES ({values}))"
        self._single = [_prepared(f"{one_row} {statement}", common) for statement in statements]

    def bind(self, rows: Sequence[Values], **common: object) -> Bound[None]:
        """They with these values, to be run with others. The rows' values are what JSON knows."""
        return Bound(self, {"rows": rows, **common})

    def compiled(self, connection: Connection) -> Compiled:
        """The text of all of them as one, for PostgreSQL."""
        return self._chain.compiled(connection)

    def sendable(self, values: Values) -> Values:
        """Values as PostgreSQL is sent them."""
        return {**values, "rows": json.dumps(values["rows"])}

    def run_on(self, connection: Connection, values: Values) -> Rows:
        """Run them on SQLite."""
        common = dict(values)
        rows: Any = common.pop("rows")
        for statement in self._single:
            statement.run_on_each(connection, [{**row, **common} for row in rows])
        return []


def _prepared(sql: str, common: Sequence[BindParameter[Any]]) -> Prepared[tuple[Any, ...]]:
    return Prepared(tuple, text(sql).bindparams(*(bind for bind in common if f":{bind.key}" in sql)))
