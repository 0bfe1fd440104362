"""Statements that are compiled once, for what runs with every answer.

SQLAlchemy finds a statement's text at every execution, by all that the statement is made of, and wraps what
comes back. That takes several times as long as the database needs to run one of these.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, NamedTuple

from sqlalchemy import (
    BindParameter,
    Boolean,
    ClauseElement,
    ColumnElement,
    Connection,
    Dialect,
    String,
    TypeDecorator,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, psycopg
from sqlalchemy.dialects.sqlite import pysqlite
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm import Session
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.types import TypeEngine

from app.pipelines import Failed, Pipeline, Sent, as_text

Values = Mapping[str, object]
Rows = list[tuple[Any, ...]]
_Convert = Callable[[Any], Any]
# SQLite's driver takes a mapping to :name, libpq values in the order of $1, $2.
_DIALECTS: dict[str, Dialect] = {
    "postgresql": psycopg.dialect(paramstyle="numeric_dollar"),  # type: ignore[no-untyped-call]
    "sqlite": pysqlite.dialect(paramstyle="named"),
}
# A schema that changed under a statement, or one that the connection forgot; it would fail there for ever.
_STALE = {"0A000", "26000", "42P05"}


def _driver(connection: Connection) -> Any:  # both drivers have more methods than their common protocol
    return connection.connection.driver_connection


@contextmanager
def _errors_of(connection: Connection, sql: str) -> Iterator[None]:
    """Raise the driver's errors as SQLAlchemy's; who lost the database gets another connection next time."""
    base = connection.dialect.loaded_dbapi.Error
    try:
        yield
    except base as error:
        driver = connection.connection.dbapi_connection
        is_stale = getattr(error, "sqlstate", None) in _STALE
        is_lost = is_stale or connection.dialect.is_disconnect(error, driver, None)
        if is_lost:
            connection.invalidate(error)
        raise DBAPIError.instance(
            sql, None, error, base, hide_parameters=True, connection_invalidated=is_lost
        ) from error


@dataclass(slots=True)
class _Compiled:
    sql: str
    binds: list[tuple[str, _Convert | None]]
    constants: dict[str, object]  # that SQLAlchemy made parameters of
    order: Sequence[str]  # of all of these on PostgreSQL
    types: list[TypeEngine[Any]]  # of the columns, for this dialect
    conversions: list[tuple[int, _Convert]] | None = None  # by place; known once there were rows
    name: bytes = field(init=False)  # by the text, so that it means the same whoever asks the connection

    def __post_init__(self) -> None:
        self.name = b"clarinet_" + blake2b(self.sql.encode(), digest_size=12).hexdigest().encode()

    def bound(self, values: Values) -> dict[str, object]:
        given = {name: convert(values[name]) if convert else values[name] for name, convert in self.binds}
        return given | self.constants if self.constants else given

    def sent(self, values: Values) -> Sent:
        given = self.bound(values)
        return Sent(self.name, self.sql, [as_text(given[name]) for name in self.order])

    def converted(self, rows: Rows, codes: Sequence[Any], dialect: Dialect) -> Rows:
        """Rows with the types that the statement says, given what the driver calls those of the columns."""
        if self.conversions is None:
            kinds = zip(self.types, codes, strict=False)  # text has no types
            found = [type_.result_processor(dialect, code) for type_, code in kinds]
            self.conversions = [(place, convert) for place, convert in enumerate(found) if convert]
        for place, convert in self.conversions:
            rows = [(*row[:place], convert(row[place]), *row[place + 1 :]) for row in rows]
        return rows


class Prepared:
    """A statement, or one for each dialect. Values are given by name, all that it has."""

    def __init__(self, statement: ClauseElement | Mapping[str, ClauseElement]) -> None:
        self._statement = statement
        self._compiled: dict[str, _Compiled] = {}

    def given(self, **values: object) -> "Given":
        """It with these values, to be run with others."""
        return Given(self, values)

    def rows(self, session: Session, **values: object) -> Rows:
        """Run it in the session's transaction; gives plain tuples of typed values."""
        return together(session, Given(self, values))[0]

    def row(self, session: Session, **values: object) -> tuple[Any, ...] | None:
        """The first of them."""
        return next(iter(self.rows(session, **values)), None)

    def sendable(self, values: Values) -> Values:
        """Values as PostgreSQL is sent them."""
        return values

    def run_on(self, connection: Connection, values: Values) -> Rows:
        """Run it on SQLite."""
        compiled = self.compiled(connection)
        with _errors_of(connection, compiled.sql):
            cursor = _driver(connection).execute(compiled.sql, compiled.bound(values))
            if cursor.description is None:
                return []
            rows = cursor.fetchall()
        return compiled.converted(rows, [column[1] for column in cursor.description], connection.dialect)

    def run_on_each(self, connection: Connection, rows: Sequence[Values]) -> None:
        """Run it on SQLite with each of several sets of values."""
        compiled = self.compiled(connection)
        with _errors_of(connection, compiled.sql):
            _driver(connection).cursor().executemany(compiled.sql, [compiled.bound(row) for row in rows])

    def compiled(self, connection: Connection) -> _Compiled:
        """Its text for a connection's dialect."""
        name = connection.dialect.name
        if name in self._compiled:
            return self._compiled[name]
        statement = self._statement[name] if isinstance(self._statement, Mapping) else self._statement
        dialect = _DIALECTS[name]
        compiled = statement.compile(dialect=dialect)
        assert isinstance(compiled, SQLCompiler)
        binds: list[tuple[str, _Convert | None]] = [
            (name, bind.type.dialect_impl(dialect).bind_processor(dialect))
            for bind, name in compiled.bind_names.items()
            if bind.required
        ]
        constants = {
            name: convert(bind.value) if convert else bind.value
            for bind, name in compiled.bind_names.items()
            if not bind.required
            for convert in [bind.type.dialect_impl(dialect).bind_processor(dialect)]
        }
        columns = getattr(statement, "selected_columns", ())
        types = [column.type.dialect_impl(dialect) for column in columns]
        order = compiled.positiontup or ()
        return self._compiled.setdefault(name, _Compiled(compiled.string, binds, constants, order, types))


class Given(NamedTuple):
    """A statement with values for all that it has."""

    statement: "Prepared | RowWrites"
    values: Values


def together(session: Session, *given: Given) -> list[Rows]:
    """Run several statements in the session's transaction, one after the other; gives the rows of each.

    On PostgreSQL in one round trip; each still sees what was committed while those before it waited.
    """
    if not given:
        return []
    session.flush()  # as Session.execute does
    connection = session.connection()
    if connection.dialect.name == "postgresql":
        return _in_one_round_trip(connection, given)
    return [item.statement.run_on(connection, item.values) for item in given]


def _in_one_round_trip(connection: Connection, given: Sequence[Given]) -> list[Rows]:
    compiled = [item.statement.compiled(connection) for item in given]
    sent = [one.sent(item.statement.sendable(item.values)) for one, item in zip(compiled, given, strict=True)]
    pipeline = connection.info.get("pipeline")
    if pipeline is None:
        pipeline = connection.info["pipeline"] = Pipeline(_driver(connection))
    try:
        with _errors_of(connection, "; ".join(one.sql for one in compiled)):
            found = pipeline.send(sent)
    except Failed as error:
        with _errors_of(connection, compiled[error.place].sql):
            raise error.why from None
    return [
        one.converted(item.rows, item.type_codes, connection.dialect)
        for one, item in zip(compiled, found, strict=True)
    ]


class RowWrites:
    """Statements over the same given rows, in SQL with a table `given`; PostgreSQL runs all of them as one.

    So none may need what another of them changes.
    """

    def __init__(
        self, columns: Mapping[str, str], statements: Sequence[str], *common: BindParameter[Any]
    ) -> None:
        """
        Args:
            columns: of `given`, with their types on PostgreSQL.
            statements: each begins with its verb.
            common: values that all rows share, in the statements as `:name`.
        """
        typed = ", ".join(f"{name} {type_}" for name, type_ in columns.items())
        begin = f"WITH given AS (SELECT * FROM json_to_recordset(CAST(:rows AS json)) AS row ({typed}))"
        steps = [f"step_{place} AS ({statement})" for place, statement in enumerate(statements)]
        self._chain = _prepared(", ".join([begin, *steps]) + " SELECT 1", common)
        values = ", ".join(f":{name}" for name in columns)
        given = f"WITH given ({', '.join(columns)}) AS (VALUES ({values}))"
        self._single = [_prepared(f"{given} {statement}", common) for statement in statements]

    def given(self, rows: Sequence[Values], **common: object) -> Given:
        """They with these values, to be run with others. The rows' values are what JSON knows."""
        return Given(self, {"rows": rows, **common})

    def run(self, session: Session, rows: Sequence[Values], **common: object) -> None:
        """Run them all."""
        together(session, self.given(rows, **common))

    def compiled(self, connection: Connection) -> _Compiled:
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


def _prepared(sql: str, common: Sequence[BindParameter[Any]]) -> Prepared:
    return Prepared(text(sql).bindparams(*(bind for bind in common if f":{bind.key}" in sql)))


class Several(TypeDecorator[Sequence[Any]]):
    """Any number of values in one parameter: an array, which SQLite has as JSON."""

    impl = String
    cache_ok = True

    def __init__(self, item: TypeEngine[Any]) -> None:
        super().__init__()
        self.item = item

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """What the database knows."""
        return ARRAY(self.item) if dialect.name == "postgresql" else String()

    def process_bind_param(self, value: Sequence[Any] | None, dialect: Dialect) -> Any:
        """As the driver wants it."""
        if dialect.name == "postgresql" or value is None:
            return value
        convert = self.item.dialect_impl(dialect).bind_processor(dialect)
        return json.dumps([convert(item) for item in value] if convert else list(value))


class among(ColumnElement[bool]):  # noqa: N801  # reads as part of an expression
    """Whether a column is one of several values in one parameter; IN makes as many parameters as values."""

    inherit_cache = False
    type = Boolean()

    def __init__(self, column: ColumnElement[Any], values: BindParameter[Any]) -> None:
        self.column, self.values = column, values

    def self_group(self, against: object = None) -> "among":  # noqa: ARG002
        """As it is: SQLite finds no index for `... = 1`."""
        return self


@compiles(among, "postgresql")
def _is_any(element: among, compiler: SQLCompiler, **kw: Any) -> str:
    return f"{compiler.process(element.column, **kw)} = ANY ({compiler.process(element.values, **kw)})"


@compiles(among, "sqlite")
def _is_in_json(element: among, compiler: SQLCompiler, **kw: Any) -> str:
    values = compiler.process(element.values, **kw)
    return f"{compiler.process(element.column, **kw)} IN (SELECT value FROM json_each({values}))"
