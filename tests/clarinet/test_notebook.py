"""docs/notebook: it runs from an empty folder to a measured model, and is checked in without outputs."""

import json
import re
from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).parents[2] / "docs/notebook/two_folders.ipynb"
SHORT = {"PICTURES": 240, "EPOCHS": 1}


@pytest.mark.long
def test_the_notebook_goes_from_two_folders_to_a_measured_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With fewer pictures and one epoch, its cells as they stand."""
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    program = "\n".join("".join(cell["source"]) for cell in cells)
    for name, value in SHORT.items():
        program, found = re.subn(rf"^{name} = \d+", f"{name} = {value}", program, flags=re.MULTILINE)
        assert found == 1
    monkeypatch.chdir(tmp_path)

    exec(compile(program, NOTEBOOK.name, "exec"), {"__name__": "__main__"})  # the notebook is ours

    printed = capsys.readouterr().out
    told = re.search(r"^(\S+) % of 60 pictures \((\S+) to (\S+) %\)$", printed, re.MULTILINE)
    assert told is not None, printed
    accuracy, low, high = map(float, told.groups())
    assert 0 <= low <= accuracy <= high <= 100
    assert re.search(r"^120 questions about 10 classes: \d+ yes, \d+ no$", printed, re.MULTILINE)
    assert {path.name for path in (tmp_path / "model").iterdir()} >= {"model.safetensors", "model.onnx"}
    assert [(cell["outputs"], cell["execution_count"]) for cell in cells] == [([], None)] * len(cells)
    assert (notebook["nbformat"], len({cell["id"] for cell in notebook["cells"]})) == (
        4,
        len(notebook["cells"]),
    )
