"""Pages as their tests look at them."""

import re
from html import unescape

from fastapi.testclient import TestClient

HTML = {"accept": "text/html"}


def words_of(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).split())


def page(client: TestClient, path: str) -> str:
    answer = client.get(path, headers=HTML)
    assert answer.status_code == 200, answer.text
    return answer.text
