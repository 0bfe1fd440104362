"""The place of artefacts that the settings choose."""

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from app.errors import AppError
from app.settings import Settings
from app.storage import Storage
from app.stores.cache import Cache
from app.stores.folder import FolderStorage

if TYPE_CHECKING:
    from obstore.store import S3Store

PATIENCE_S = 4.0  # of a request: for so long a bucket is asked again before it counts as away
SILENCE_S = 10.0  # after which a request to the store counts as lost; one sends or takes 8 MiB at most
CONNECT_S = 3.0
MIB = 2**20


def storage_of(settings: Settings) -> Storage:
    """Where this installation keeps its artefacts, waited for as long as a request can wait.

    Raises:
        StorageNotInstalled: there is to be a bucket, and this installation cannot speak to one.
    """
    if not settings.s3_bucket:
        return FolderStorage(settings.artefact_dir)
    try:
        from app.stores.bucket import BucketStorage  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise StorageNotInstalled from error
    prefix = settings.s3_prefix.strip("/")
    words = "/".join(filter(None, [f"s3://{settings.s3_bucket}", prefix]))
    return BucketStorage(
        s3_store(settings),
        cache_of(settings),
        words=words,
        patience_s=PATIENCE_S,
        gives_links=settings.s3_links,
    )


def cache_of(settings: Settings) -> Cache:
    """What this machine keeps of the bucket."""
    return Cache(settings.data_dir / "bucket", settings.s3_cache_mb * MIB)


class StorageNotInstalled(AppError):
    """The extra is missing that speaks to buckets."""

    def __init__(self) -> None:
        super().__init__("CLARINET_S3_BUCKET is set, but obstore is missing: pip install 'clarinet[s3]'")


def s3_store(settings: Settings) -> "S3Store":
    """The bucket, from the prefix on.

    What the settings leave open, AWS's own variables say, or the machine's role.
    """
    from obstore.store import S3Store  # noqa: PLC0415 - an extra

    given: dict[str, Any] = {
        "endpoint": settings.s3_endpoint,
        "region": settings.s3_region,
        "access_key_id": settings.s3_access_key_id,
        "secret_access_key": settings.s3_secret_access_key.get_secret_value(),
        "server_side_encryption": settings.s3_encryption,
        "sse_kms_key_id": settings.s3_kms_key_id,
    }
    return S3Store(
        settings.s3_bucket,
        prefix=settings.s3_prefix.strip("/") or None,
        config={name: value for name, value in given.items() if value},  # type: ignore[arg-type]  # by name
        client_options={
            "allow_http": settings.s3_endpoint.startswith("http://"),
            "connect_timeout": timedelta(seconds=CONNECT_S),
            "read_timeout": timedelta(seconds=SILENCE_S),
            "timeout": timedelta(seconds=6 * SILENCE_S),
        },
        retry_config={
            "max_retries": 3,
            "retry_timeout": timedelta(seconds=SILENCE_S),
            "backoff": {
                "init_backoff": timedelta(milliseconds=100),
                "max_backoff": timedelta(seconds=2),
                "base": 2,
            },
        },
    )
