"""Any number of values in one parameter, so that a statement has one text for all numbers of them."""

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import BindParameter, Boolean, ColumnElement, Dialect, String, TypeDecorator
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.types import TypeEngine


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
