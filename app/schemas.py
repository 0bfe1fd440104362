"""Bases of what the JSON API accepts and returns."""

from pydantic import BaseModel, ConfigDict


class Input(BaseModel):
    """A request body. A misspelt field is an error, not silence."""

    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True)


class Output(BaseModel):
    """A response, read from a row or built by hand."""

    model_config = ConfigDict(from_attributes=True)
