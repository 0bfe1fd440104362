"""What a run is, in words for pages; the codes stay what programs read. Pure."""

from dataclasses import dataclass

from app.runs import configs
from app.runs.models import Run

LEARNS_FROM = {"cc": "“no” answers", "pc": "“no” and “yes” answers"}  # where there is little room
SETTINGS = {"cc": "learns from “no” answers alone", "pc": "learns from “no” and “yes” answers"}
PRESETS = {
    "paper": "as in the paper",
    "published": "as in the authors' code",
    "short": "shortened",
    "digits": "for digits",
    "digits-quick": "for digits, quick",
    "photographs": "for photographs",
    "photographs-quick": "for photographs, quick",
    "photographs-untrained": "for photographs, without trained weights",
}


@dataclass(frozen=True, slots=True)
class Called:
    """Words, and the code behind them."""

    words: str
    code: str


def method_of(run: Run) -> Called:
    """Its method; one that this version does not know by its code."""
    title, _ = configs.methods().get(run.method, (run.method, ""))
    return Called(title, f"method {run.method}")


def preset_of(run: Run) -> Called:
    """Its preset."""
    return preset_called(run.preset)


def preset_called(preset: str) -> Called:
    """A preset; one that this version does not know by its code."""
    return Called(PRESETS.get(preset, preset), f"preset {preset}")


def setting_of(run: Run) -> Called:
    """What it learns from."""
    return Called(SETTINGS.get(run.setting, run.setting), f"setting {run.setting.upper()}")


def in_table(run: Run) -> dict[str, Called]:
    """The same three by the keys of their columns, in few words."""
    words = LEARNS_FROM.get(run.setting, run.setting)
    setting = Called(words, f"setting {run.setting.upper()}")
    return {"method": method_of(run), "preset": preset_of(run), "setting": setting}


def counted(number: int) -> str:
    """A number in a sentence, its thousands apart."""
    return f"{number:,}".replace(",", " ")
