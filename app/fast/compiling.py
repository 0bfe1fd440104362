"""A statement's text for one dialect, found once; lists of any length are one parameter of it.

SQLAlchemy finds it at every execution, by all that the statement is made of, and wraps what comes back. That
takes several times as long as the database needs to run one of these.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from sqlalchemy import (
    BindParameter,
    Boolean,
    ClauseElement,
    ColumnElement,
    Connection,
    Dialect,
    String,
    TypeDecorator,
)
from sqlalchemy.dialects.postgresql import ARRAY, psycopg
from sqlalchemy.dialects.sqlite import pysqlite
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.types import TypeEngine

from app.fast.pipelines import Sent, as_text
from app.tracing.spans import statement

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


def driver_of(connection: Connection) -> Any:  # both have more methods than their common protocol
    """The driver's own connection."""
    return connection.connection.driver_connection


@contextmanager
def errors_of(connection: Connection, sql: str) -> Iterator[None]:
    """Raise the driver's errors as SQLAlchemy's; who lost the database gets another connection next time."""
    base = connection.dialect.loaded_dbapi.Error
    try:
        with statement(sql, connection.dialect.name):
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
class Compiled:
    """A statement's text for one dialect, and how its values and rows are converted."""

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
        """Values as the driver takes them."""
        bound = {name: convert(values[name]) if convert else values[name] for name, convert in self.binds}
        return bound | self.constants if self.constants else bound

    def sent(self, values: Values) -> Sent:
        """It with values, for a pipeline."""
        bound = self.bound(values)
        return Sent(self.name, self.sql, [as_text(bound[name]) for name in self.order])

    def converted(self, rows: Rows, codes: Sequence[Any], dialect: Dialect) -> Rows:
        """Rows with the types that the statement says, given what the driver calls those of the columns."""
        if self.conversions is None:
            kinds = zip(self.types, codes, strict=False)  # text has no types
            found = [type_.result_processor(dialect, code) for type_, code in kinds]
            self.conversions = [(place, convert) for place, convert in enumerate(found) if convert]
        for place, convert in self.conversions:
            rows = [(*row[:place], convert(row[place]), *row[place + 1 :]) for row in rows]
        return rows


def compiled_for(name: str, statement: ClauseElement) -> Compiled:
    """The text of a statement for the dialect of this name."""
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
    return Compiled(compiled.string, binds, constants, order, types)


class ListOf(TypeDecorator[Sequence[Any]]):
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


class in_list(ColumnElement[bool]):  # noqa: N801  # reads as part of an expression
    """Whether a column is one of several values in one parameter; IN makes as many parameters as values."""

    inherit_cache = False
    type = Boolean()

    def __init__(self, column: ColumnElement[Any], values: BindParameter[Any]) -> None:
        self.column, self.values = column, values

    def self_group(self, against: object = None) -> "in_list":  # noqa: ARG002
        """As it is: SQLite finds no index for `... = 1`."""
        return self


@compiles(in_list, "postgresql")
def _is_any(element: in_list, compiler: SQLCompiler, **kw: Any) -> str:
    return f"{compiler.process(element.column, **kw)} = ANY ({compiler.process(element.values, **kw)})"


@compiles(in_list, "sqlite")
def _is_in_json(element: in_list, compiler: SQLCompiler, **kw: Any) -> str:
    values = compiler.process(element.values, **kw)
    return f"{compiler.process(element.column, **kw)} IN (SELECT value FROM json_each({values}))"
