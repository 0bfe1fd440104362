"""What holds for every answer."""

from collections.abc import Iterator

from fastapi.testclient import TestClient

from app.hardening import MAX_BODY_BYTES


def test_every_answer_carries_the_headers(anonymous: TestClient) -> None:
    for path in ("/healthz", "/sign-in", "/nowhere", "/api/v1/openapi.json"):
        headers = anonymous.get(path).headers

        assert "default-src 'none'" in headers["content-security-policy"], path
        assert headers["x-content-type-options"] == "nosniff", path


def test_a_body_that_says_it_is_too_large_is_refused_unread(client: TestClient) -> None:
    response = client.post("/api/v1/tokens", content=b"x" * (MAX_BODY_BYTES + 1))

    assert response.status_code == 413
    assert "at most 2 MB" in response.json()["detail"]


def test_a_body_that_grows_past_the_limit_is_refused(client: TestClient) -> None:
    def chunks() -> Iterator[bytes]:
        for _ in range(MAX_BODY_BYTES // 65536 + 2):
            yield b"x" * 65536

    response = client.post("/api/v1/tokens", content=chunks(), headers={"content-type": "application/json"})

    assert response.status_code == 413


def test_a_request_id_is_given_back_unless_it_could_forge_a_log_line(anonymous: TestClient) -> None:
    assert anonymous.get("/healthz", headers={"x-request-id": "abc-1"}).headers["x-request-id"] == "abc-1"
    forged = anonymous.get("/healthz", headers={"x-request-id": "a b=c"}).headers["x-request-id"]
    assert forged != "a b=c"
