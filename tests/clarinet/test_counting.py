"""Numbers in sentences agree with what they count."""

import pytest
import torch

from app.runs.errors import TooFewLabels
from clarinet.data.training_data import check_labels
from clarinet.recipes.counting import is_or_are, many, there_are
from clarinet.recipes.errors import ConfigError, DataError
from clarinet.recipes.methods import config_for
from clarinet.recipes.rules import check_label_count


@pytest.mark.parametrize(
    ("count", "counted", "there"),
    [
        (0, "0 classes", "there are 0 classes"),
        (1, "1 class", "there is 1 class"),
        (2, "2 classes", "there are 2 classes"),
        (1_234, "1,234 classes", "there are 1,234 classes"),
    ],
)
def test_one_is_told_from_several(count: int, counted: str, there: str) -> None:
    assert many(count, "class", "classes") == counted
    assert there_are(count, "class", "classes") == there
    assert many(count, "true label") == f"{count:,} true label{'' if count == 1 else 's'}"
    assert is_or_are(count) == ("is" if count == 1 else "are")


def test_refusals_of_one_thing() -> None:
    told = "1 more answer until a run can start: it needs 1 true label and the campaign has 0."
    assert TooFewLabels(have=0, need=1, kind="true").detail == told
    with pytest.raises(DataError, match=r"^1 label cannot tell 2 classes apart; collect 1 more"):
        check_label_count(1, 2)
    with pytest.raises(DataError, match=r"^true has 2 entries for 1 image$"):
        check_labels("true", torch.zeros(2, dtype=torch.int64), count=1, lowest=-1, num_classes=2)
    with pytest.raises(ConfigError, match="but only 1 epoch can adapt"):
        config_for("clarinet", "digits", epochs=1, adaptation_start_epoch=1)
