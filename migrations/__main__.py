"""`python -m migrations "add contact to campaign"`: draft the next migration, from what the models have more.

It compares the models with an empty SQLite database that has every migration so far. Read and edit the draft:
renames, checks and data it does not see.
"""

import sys
import tempfile
from pathlib import Path

from alembic import command
from alembic.script import ScriptDirectory

from app.db import connect
from app.migrate import alembic_config, upgrade


def draft(message: str) -> None:
    """Write the file and leave the database of nobody changed."""
    config = alembic_config()
    last = ScriptDirectory.from_config(config).get_current_head() or "0"
    with tempfile.TemporaryDirectory() as folder:
        database = connect(f"sqlite:///{Path(folder) / 'empty.db'}")
        upgrade(database.engine)
        with database.engine.connect() as connection:
            config.attributes["connection"] = connection
            command.revision(config, message, autogenerate=True, rev_id=f"{int(last) + 1:04}")
        database.dispose()


if __name__ == "__main__":
    draft(sys.argv[1])
