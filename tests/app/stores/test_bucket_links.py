"""Links by which a bucket itself hands files out, where the operator lets it."""

import hashlib
import http.client
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from fastapi.testclient import TestClient

from app.db import connect
from app.main import create_app
from app.migrate import upgrade
from app.registry.service import WEIGHTS as WEIGHTS_FILE
from tests.app.registry.conftest import WEIGHTS as MODEL_BYTES
from tests.app.registry.conftest import publish
from tests.buckets import bucket_of, bucket_settings, new_bucket, put_bare
from tests.factories import make_run, make_token, make_user


def test_a_model_is_fetched_from_the_bucket_itself_where_the_operator_wants_it(
    s3: int, tmp_path: Path
) -> None:
    settings = bucket_settings(tmp_path, s3, new_bucket(s3), s3_links=True)
    database = connect(settings.sqlalchemy_url)
    upgrade(database.engine)
    app = create_app(settings, database=database, publish=lambda _: None)
    storage = app.state.storage
    with database.write() as session:
        model = publish(session, storage, make_run(session, storage, train=2, state="succeeded").trials[0])
        tokens = [make_token(session, make_user(session, role=role)) for role in ("admin", "annotator")]
        session.commit()
        address, key = f"/api/v1/models/{model.id}/files/{WEIGHTS_FILE}", f"{model.key}/{WEIGHTS_FILE}"
        digest = model.digest
    admin, annotator = ({"Authorization": f"Bearer {token}"} for token in tokens)
    with TestClient(app, follow_redirects=False) as client:
        answer = client.get(address, headers=admin)
        refused = client.get(address, headers=annotator).status_code
        nobody = client.get(address).status_code
        storage.put(key, b"others")
        damaged = client.get(address, headers=admin)
    database.dispose()

    place = urlsplit(answer.headers["location"])
    assert (answer.status_code, refused, nobody) == (307, 403, 401)
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["content-disposition"].startswith('attachment; filename="clarinet-run')
    assert parse_qs(place.query)["X-Amz-Expires"] == ["300"]
    assert damaged.json()["type"].endswith("stored-file-damaged")
    storage.put(key, MODEL_BYTES)
    connection = http.client.HTTPConnection(place.netloc)
    connection.request("GET", f"{place.path}?{place.query}")
    assert hashlib.sha256(connection.getresponse().read()).hexdigest() == digest
    connection.close()
    assert bucket_of(bucket_settings(tmp_path, s3, settings.s3_bucket)).link(key, digest) is None
    put_bare(s3, settings.s3_bucket, key, MODEL_BYTES)
    assert storage.link(key, digest) is None, "nothing says that these are its bytes"
