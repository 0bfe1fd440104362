"""What a child process is told of its parent's settings."""

from pathlib import Path
from typing import Any

import pytest

from app.settings import Settings
from worker.local.processes import environment_of


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"weights_dir": Path("/srv/weights"), "dataset_roots": (Path("/srv/a b"), Path("/srv/c"))},
        {"trainer_threads": 3, "device": "cpu", "oidc_roles": {"staff": "admin"}},
    ],
    ids=["usual", "folders", "others"],
)
def test_a_child_reads_the_settings_of_its_parent(
    changes: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = Settings(environment="test", data_dir=tmp_path, _env_file=None, **changes)
    (tmp_path / ".env").write_text("CLARINET_WEIGHTS_DIR=/elsewhere\n")

    for name, text in environment_of(given).items():
        monkeypatch.setenv(name, text)

    assert Settings(_env_file=tmp_path / ".env") == given
