"""Everything a deployment may vary, read once from the environment."""

import ipaddress
import re
import secrets
from datetime import timedelta
from pathlib import Path
from typing import Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_settings import SettingsConfigDict
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from app.organisation_settings import OrganisationSettings
from app.said_settings import parts_of

MIN_SECRET_LENGTH = 32
MAIL_SCHEMES = ("smtp", "smtp+starttls", "smtps")
BROKERS = ("filesystem", "redis", "rediss", "amqp", "amqps")
DATABASES = ("sqlite", "postgresql")


Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def networks_of(given: str) -> tuple[Network, ...]:
    """Addresses and networks with commas between them; raises ValueError where one is none."""
    return tuple(ipaddress.ip_network(item.strip()) for item in given.split(",") if item.strip())


class Settings(OrganisationSettings):
    """Everything the deployment may vary. docs/settings.md says the same, and a test checks that."""

    model_config = SettingsConfigDict(
        env_prefix="CLARINET_", env_file=".env", frozen=True, extra="ignore", enable_decoding=False
    )

    environment: Literal["development", "test", "production"] = Field(
        default="development", description="production refuses to start on secrets that were not set by you"
    )
    data_dir: Path = Field(
        default=Path("var"), description="database, images, queue and checkpoints of one machine"
    )
    database_url: str = Field(default="", description="empty: SQLite in the data directory")
    broker_url: str = Field(default="filesystem://", description="filesystem:// or redis://host:6379/0")
    public_url: str = Field(
        default="http://127.0.0.1:8000",
        description="where people reach the pages; https turns on Secure cookies",
    )
    session_secret: SecretStr = Field(
        default=SecretStr(""), description="signs CSRF tokens; made on first start outside production"
    )
    max_upload_mb: int = Field(default=2048, gt=0, description="largest dataset file taken over HTTP")
    dataset_roots: tuple[Path, ...] = Field(
        default=(), description="server folders from which admins may import datasets by path, as a JSON list"
    )
    s3_bucket: str = Field(
        default="",
        description="bucket of images, snapshots, checkpoints, models; empty: a folder in the data directory",
    )
    s3_prefix: str = Field(default="", description="path in the bucket below which all of it lies")
    s3_endpoint: str = Field(
        default="",
        description="https://host:port of a store that is not Amazon's; http:// in a network of yours",
    )
    s3_region: str = Field(default="", description="empty: AWS_REGION, else us-east-1")
    s3_access_key_id: str = Field(
        default="", description="empty: AWS_ACCESS_KEY_ID and its like, else the machine's role"
    )
    s3_secret_access_key: SecretStr = Field(
        default=SecretStr(""), description="goes with the access key's id"
    )
    s3_encryption: Literal["", "AES256", "aws:kms"] = Field(
        default="",
        description="how the store encrypts: AES256 (SSE-S3), aws:kms (SSE-KMS); empty: as it does",
    )
    s3_kms_key_id: str = Field(default="", description="key of SSE-KMS; empty: the account's own")
    s3_links: bool = Field(
        default=False,
        description="the bucket itself hands out weights and ONNX files, by links of a few minutes",
    )
    s3_cache_mb: int = Field(
        default=10240,
        gt=0,
        description="what a machine keeps of the bucket, in data/bucket; the least used goes",
    )
    weights_dir: Path | None = Field(
        default=None, description="server folder in which the operator keeps files of trained weights"
    )
    statement_timeout_s: int = Field(
        default=120,
        ge=0,
        description="PostgreSQL ends what a request asks it after this long; 0: never; workers have no limit",
    )
    run_timeout_s: int = Field(default=6 * 3600, gt=0, description="a trial that trains longer fails")
    stall_timeout_s: int = Field(
        default=900, ge=1, description="a trial that does not get on for so long is given to another worker"
    )
    min_free_mb: int = Field(
        default=256,
        ge=0,
        description="a worker takes no training while the disk of its data has less room, in MB",
    )
    keep_logs_days: int = Field(
        default=30, ge=1, description="days for which the log of a trial that is over is kept"
    )
    keep_checkpoints_days: int = Field(
        default=30, ge=1, description="days for which the checkpoint of one that did not end well is kept"
    )
    device: str = Field(default="auto", description="auto, cpu or cuda: where trials train")
    gpus: int = Field(
        default=1,
        ge=1,
        description="GPUs of its host that a worker takes for itself, and no other worker then",
    )
    launcher: Literal["local", "kubernetes", "slurm"] = Field(
        default="local", description="who starts a trial: the worker that heard of it, or a cluster, as a job"
    )
    launcher_template: Path | None = Field(
        default=None, description="description of such a job, as in deploy/kubernetes and deploy/slurm"
    )
    trainer_threads: int = Field(default=0, ge=0, description="CPU threads of one trial; 0: torch decides")
    trials_at_once: int = Field(
        default=1, ge=1, le=64, description="seeds of one run that a worker trains in one process, by turns"
    )
    log_format: Literal["auto", "json", "console"] = Field(
        default="auto", description="auto: json in production, console elsewhere"
    )
    trusted_proxies: str = Field(
        default="127.0.0.1", description="addresses whose X-Forwarded-* headers are believed"
    )
    metrics_from: str = Field(
        default="127.0.0.0/8,::1",
        description="addresses and networks that may read /metrics, with commas; empty: nobody",
    )

    traces: bool = Field(
        default=False,
        description="tell an OpenTelemetry collector, which OTEL_* variables name, what is done",
    )

    session_idle_s: int = Field(
        default=3 * 24 * 3600, ge=300, description="a session that nobody uses for so long ends"
    )
    require_second_factor: bool = Field(
        default=False, description="admins and reviewers without a second factor may only set one up"
    )
    contact: str = Field(
        default="", max_length=200, description="whom people ask for an account or another password"
    )
    smtp_url: SecretStr = Field(
        default=SecretStr(""),
        description="smtp://host:25, smtp+starttls://user:password@host:587 or smtps://...; empty: no mail",
    )
    mail_from: str = Field(
        default="", max_length=254, description="sender of mail; needed with an SMTP server"
    )

    webhook_hosts: tuple[str, ...] = Field(
        default=(),
        description="hosts to which notices may be posted over https, as a JSON list; other ports: host:port",
    )
    webhook_private_addresses: bool = Field(
        default=False, description="post also to addresses of this machine and its networks, and over http"
    )

    @field_validator("weights_dir", "launcher_template", mode="before")
    @classmethod
    def empty_is_none(cls, given: object) -> object:
        """A variable that is set to nothing names no folder, rather than the working directory."""
        return None if given == "" else given

    @field_validator("database_url")
    @classmethod
    def refuse_another_database(cls, given: str) -> str:
        """What cannot be read as an address of a database that we know is told by its setting's name."""
        try:
            is_known = not given or make_url(given).get_backend_name() in DATABASES
        except (ArgumentError, ValueError) as error:
            raise ValueError(
                "CLARINET_DATABASE_URL is no address of a database, as postgresql://user:password@host:5432/name"
            ) from error
        if not is_known:
            raise ValueError(f"CLARINET_DATABASE_URL begins with one of {', '.join(DATABASES)}")
        return given

    @field_validator("broker_url")
    @classmethod
    def refuse_another_broker(cls, given: str) -> str:
        """A misspelt broker would end each worker as it starts."""
        # Of several, with semicolons between them, no port can be read.
        if parts_of(given, "CLARINET_BROKER_URL", with_port=False).scheme not in BROKERS:
            raise ValueError(
                f"CLARINET_BROKER_URL begins with one of {', '.join(BROKERS)}, as in redis://host"
            )
        return given

    @field_validator("public_url")
    @classmethod
    def refuse_what_no_link_begins_with(cls, given: str) -> str:
        """Links in mail and on pages begin so."""
        url = parts_of(given, "CLARINET_PUBLIC_URL")
        if url.scheme not in ("http", "https") or not url.hostname:
            raise ValueError("CLARINET_PUBLIC_URL begins with http:// or https:// and names a host")
        return given

    @field_validator("device")
    @classmethod
    def refuse_another_device(cls, given: str) -> str:
        """A misspelt one would fail each trial."""
        if not re.fullmatch(r"auto|cpu|cuda(:\d+)?", given):
            raise ValueError("CLARINET_DEVICE is auto, cpu or cuda")
        return given

    @model_validator(mode="after")
    def refuse_example_secrets(self) -> Self:
        """Production runs on secrets that somebody chose, or not at all."""
        if self.environment == "production":
            secret = self.session_secret.get_secret_value()
            if len(secret) < MIN_SECRET_LENGTH or "change-me" in secret:
                raise ValueError(
                    "In production CLARINET_SESSION_SECRET must be at least 32 characters of your own, "
                    "for example from: openssl rand -hex 32"
                )
        return self

    @model_validator(mode="after")
    def refuse_mail_that_cannot_work(self) -> Self:
        """A password must not go to a mail server in the clear, and mail needs a sender."""
        url = parts_of(self.smtp_url.get_secret_value(), "CLARINET_SMTP_URL")
        if not url.geturl():
            return self
        if url.scheme not in MAIL_SCHEMES or not url.hostname:
            raise ValueError(
                f"CLARINET_SMTP_URL begins with one of {', '.join(MAIL_SCHEMES)}, and names a host"
            )
        if url.scheme == "smtp" and url.password is not None:
            raise ValueError("CLARINET_SMTP_URL has a password: use smtp+starttls:// or smtps://")
        if "@" not in self.mail_from:
            raise ValueError("CLARINET_MAIL_FROM must be an address, because CLARINET_SMTP_URL is set")
        return self

    @model_validator(mode="after")
    def refuse_a_launcher_without_a_job(self) -> Self:
        """A cluster starts what a file describes."""
        if self.launcher != "local" and self.launcher_template is None:
            raise ValueError(
                f"CLARINET_LAUNCHER is {self.launcher}: name the description of its jobs in "
                "CLARINET_LAUNCHER_TEMPLATE; deploy/ has one to begin with"
            )
        return self

    @model_validator(mode="after")
    def refuse_half_a_bucket(self) -> Self:
        """What cannot work is said at the start, not by the first image."""
        if not self.s3_bucket:
            return self
        endpoint = parts_of(self.s3_endpoint, "CLARINET_S3_ENDPOINT")
        if self.s3_endpoint and (endpoint.scheme not in {"http", "https"} or not endpoint.hostname):
            raise ValueError("CLARINET_S3_ENDPOINT begins with https:// or http://, and names a host")
        if bool(self.s3_access_key_id) != bool(self.s3_secret_access_key.get_secret_value()):
            raise ValueError("CLARINET_S3_ACCESS_KEY_ID and CLARINET_S3_SECRET_ACCESS_KEY go together")
        if self.s3_kms_key_id and self.s3_encryption != "aws:kms":
            raise ValueError("CLARINET_S3_KMS_KEY_ID needs CLARINET_S3_ENCRYPTION=aws:kms")
        return self

    @field_validator("metrics_from")
    @classmethod
    def refuse_what_is_no_network(cls, given: str) -> str:
        """A misspelt network lets nobody in, which would be noticed late."""
        try:
            networks_of(given)
        except ValueError as error:
            raise ValueError(
                "CLARINET_METRICS_FROM is addresses and networks with commas, as in 10.0.0.0/8,::1"
            ) from error
        return given

    @property
    def logs_json(self) -> bool:
        """Whether logs are for machines."""
        return self.log_format == "json" or (self.log_format == "auto" and self.environment == "production")

    @property
    def metrics_networks(self) -> tuple[Network, ...]:
        """Who may read what is measured."""
        return networks_of(self.metrics_from)

    @property
    def session_idle(self) -> timedelta:
        """How long a session may rest."""
        return timedelta(seconds=self.session_idle_s)

    @property
    def sends_mail(self) -> bool:
        """Whether there is a mail server."""
        return bool(self.smtp_url.get_secret_value())

    @property
    def sqlalchemy_url(self) -> str:
        """The database address, with the embedded default filled in."""
        return self.database_url or f"sqlite:///{(self.data_dir / 'clarinet.db').resolve()}"

    @property
    def artefact_dir(self) -> Path:
        """Root of images, snapshots and checkpoints."""
        return self.data_dir / "artefacts"

    @property
    def queue_dir(self) -> Path:
        """Folder of the filesystem:// broker."""
        return self.data_dir / "queue"

    @property
    def is_secure(self) -> bool:
        """Whether browsers reach us over https."""
        return urlsplit(self.public_url).scheme == "https"

    def signing_secret(self) -> bytes:
        """The session secret; outside production one is made on first use and kept in the data directory."""
        given = self.session_secret.get_secret_value()
        if given:
            return given.encode()
        path = self.data_dir / "session_secret"
        self.data_dir.mkdir(parents=True, exist_ok=True)
        try:
            with path.open("x", encoding="ascii") as file:
                path.chmod(0o600)
                file.write(secrets.token_hex(32))
        except FileExistsError:
            pass
        return path.read_bytes()
