"""`python -m worker.schema`: write the library's TrainConfig as a JSON schema for the web process.

Only this layer may know both sides; a test compares the file with what the library says today.
"""

import json
from pathlib import Path

from app.runs.configs import SCHEMA_PATH
from clarinet.recipes.schema import json_schema


def rendered() -> str:
    """The file's text."""
    return json.dumps(json_schema(), indent=1) + "\n"


def write_schema(path: Path = SCHEMA_PATH) -> None:
    """Bring the file up to date with the library."""
    path.write_text(rendered(), encoding="utf-8")


if __name__ == "__main__":
    write_schema()
