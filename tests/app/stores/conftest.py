"""Buckets for these tests."""

from pathlib import Path

import pytest

from app.stores.bucket import BucketStorage
from tests.buckets import FaultyS3, bucket_of, bucket_settings, new_bucket


@pytest.fixture
def through(s3: int, faulty: FaultyS3, tmp_path: Path) -> BucketStorage:
    """A new bucket, asked through the proxy."""
    return bucket_of(bucket_settings(tmp_path / "near", faulty.port, new_bucket(s3)), patience_s=20)
