"""Settings refuse what would be unsafe, and make what may be made."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from app.settings import Settings


@pytest.mark.parametrize("secret", ["", "short", "change-me-change-me-change-me-change-me"])
def test_production_refuses_to_start_without_a_secret_of_its_own(secret: str) -> None:
    with pytest.raises(ValidationError, match="CLARINET_SESSION_SECRET"):
        Settings(environment="production", session_secret=secret, _env_file=None)


def test_a_secret_is_made_once_and_readable_by_us_alone(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path / "new", _env_file=None)

    first, second = settings.signing_secret(), settings.signing_secret()

    assert first == second
    assert len(first) == 64
    assert (tmp_path / "new" / "session_secret").stat().st_mode & 0o077 == 0


def test_the_environment_is_read_when_settings_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLARINET_PUBLIC_URL", "https://labels.example.org")

    assert Settings(_env_file=None).is_secure


def test_a_folder_of_weights_that_is_set_to_nothing_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Settings(_env_file=None).weights_dir is None
    monkeypatch.setenv("CLARINET_WEIGHTS_DIR", "")
    assert Settings(_env_file=None).weights_dir is None
    monkeypatch.setenv("CLARINET_WEIGHTS_DIR", "/srv/weights")
    assert Settings(_env_file=None).weights_dir == Path("/srv/weights")


def test_a_secret_never_shows_in_a_repr() -> None:
    assert "hunter2" not in repr(Settings(session_secret="hunter2", _env_file=None))
