"""What a result says of the code that made it."""

from pathlib import Path

import pytest

from clarinet.run import provenance


def test_other_code_has_another_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "part").mkdir()
    for name, text in (("provenance.py", "x = 1\n"), ("part/a.py", "y = 2\n"), ("notes.txt", "no code\n")):
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(provenance, "__file__", str(tmp_path / "provenance.py"))
    digest = provenance.code_digest.__wrapped__  # without what it remembers

    first = digest()
    (tmp_path / "notes.txt").write_text("other words\n")
    same = digest()
    (tmp_path / "part/a.py").write_text("y = 3\n")
    edited = digest()
    (tmp_path / "part/a.py").rename(tmp_path / "part/b.py")

    assert first == same
    assert len({first, edited, digest()}) == 3
