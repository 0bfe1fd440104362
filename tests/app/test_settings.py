"""Settings refuse what would be unsafe, and make what may be made."""

from pathlib import Path
from typing import get_origin

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


JSON_VALUED = [
    name for name, field in Settings.model_fields.items() if get_origin(field.annotation) in (tuple, dict)
]
OF_OTHER_KINDS = [
    name for name, field in Settings.model_fields.items() if field.annotation in (int, bool, Path)
]


@pytest.mark.parametrize("empty", ["", " "])
@pytest.mark.parametrize("name", [*JSON_VALUED, *OF_OTHER_KINDS])
def test_a_setting_that_is_set_to_nothing_has_its_default(
    monkeypatch: pytest.MonkeyPatch, name: str, empty: str
) -> None:
    monkeypatch.setenv(f"CLARINET_{name.upper()}", empty)

    assert getattr(Settings(_env_file=None), name) == Settings.model_fields[name].get_default()


@pytest.mark.parametrize("name", JSON_VALUED)
@pytest.mark.parametrize("given", ["/srv/images", "{", "7", "null", '[""]', "[7]", '{"a": 1}'])
def test_what_is_no_json_of_its_kind_is_told_by_its_setting_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch, name: str, given: str
) -> None:
    monkeypatch.setenv(f"CLARINET_{name.upper()}", given)

    with pytest.raises(ValidationError) as refused:
        Settings(_env_file=None)

    (fault,) = refused.value.errors()
    what = "a JSON object" if name == "oidc_roles" else "a JSON list of texts"
    assert fault["msg"].startswith(f"Value error, CLARINET_{name.upper()} is '{given}', which is not {what}")


def test_json_settings_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLARINET_DATASET_ROOTS", '["/srv/a", "/srv/b"]')
    monkeypatch.setenv("CLARINET_OIDC_ROLES", '{"heads": "admin"}')

    settings = Settings(_env_file=None)

    assert settings.dataset_roots == (Path("/srv/a"), Path("/srv/b"))
    assert settings.oidc_roles == {"heads": "admin"}


@pytest.mark.parametrize(
    ("name", "given", "told"),
    [
        ("max_upload_mb", "much", "CLARINET_MAX_UPLOAD_MB is 'much': input should be a valid integer"),
        ("max_upload_mb", "-1", "CLARINET_MAX_UPLOAD_MB is '-1': input should be greater than 0"),
        ("environment", "prod", "CLARINET_ENVIRONMENT is 'prod': input should be 'development'"),
        ("environment", "", "CLARINET_ENVIRONMENT is '': input should be 'development'"),
        ("oidc_roles", '{"a": "king"}', "CLARINET_OIDC_ROLES is"),
        ("public_url", "ftp://x", "CLARINET_PUBLIC_URL begins with http"),
        ("public_url", "http://h:x", "CLARINET_PUBLIC_URL is no address"),
        ("public_url", "http://[::1", "CLARINET_PUBLIC_URL is no address"),
        ("broker_url", "redis://[::1", "CLARINET_BROKER_URL is no address"),
        ("smtp_url", "smtp://[::1", "CLARINET_SMTP_URL is no address"),
        ("oidc_issuer", "https://[::1", "CLARINET_OIDC_ISSUER is no address"),
        ("metrics_from", "abc", "CLARINET_METRICS_FROM is addresses and networks"),
    ],
)
def test_another_value_is_told_by_its_setting(
    monkeypatch: pytest.MonkeyPatch, name: str, given: str, told: str
) -> None:
    monkeypatch.setenv(f"CLARINET_{name.upper()}", given)

    with pytest.raises(ValidationError) as refused:
        Settings(_env_file=None)

    assert refused.value.errors()[0]["msg"].removeprefix("Value error, ").startswith(told)


def test_a_secret_never_shows_in_a_repr() -> None:
    assert "hunter2" not in repr(Settings(session_secret="hunter2", _env_file=None))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"s3_endpoint": "store.example.org"}, "CLARINET_S3_ENDPOINT begins with https://"),
        ({"s3_endpoint": "http://[::1"}, "CLARINET_S3_ENDPOINT is no address"),
        ({"s3_access_key_id": "ours"}, "go together"),
        ({"s3_kms_key_id": "ours", "s3_encryption": "AES256"}, "CLARINET_S3_ENCRYPTION=aws:kms"),
    ],
)
def test_half_a_bucket_is_refused_at_the_start(given: dict[str, str], told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        Settings(s3_bucket="ours", _env_file=None, **given)  # type: ignore[arg-type]  # texts, as variables are
    assert Settings(_env_file=None, **given).s3_bucket == ""  # type: ignore[arg-type]
