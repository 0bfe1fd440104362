"""What a run is doing: in a sentence, and told seldom."""

from typing import get_args

import pytest

from clarinet.recipes.choices import DoingKind
from clarinet.recipes.doing import SENTENCES, Doing
from clarinet.run.pacing import Paced


@pytest.mark.parametrize(
    ("doing", "sentence"),
    [
        (Doing("features", 1024, 3718), "Computing the features of the images: 1,024 of 3,718."),
        (Doing("fine-tuning", 40, 150), "Fine-tuning the network: 40 of 150 steps."),
    ],
)
def test_each_kind_has_its_sentence(doing: Doing, sentence: str) -> None:
    assert doing.sentence() == sentence
    assert set(SENTENCES) == set(get_args(DoingKind))


def test_numbers_are_written_as_the_reader_writes_them() -> None:
    assert (
        Doing("fine-tuning", 4, 15).sentence("<{}>".format) == "Fine-tuning the network: <4> of <15> steps."
    )


def test_the_first_and_the_last_of_each_kind_are_told_and_others_every_two_seconds() -> None:
    told: list[tuple[float, Doing]] = []
    now = 100.0
    paced = Paced(lambda doing: told.append((now, doing)), every_s=2.0, clock=lambda: now)

    for done in range(10):  # 0 at 100.0 s, 9 at 106.3 s
        paced(Doing("features", done, 9))
        now += 0.7
    now -= 0.7
    for done in (10, 20, 30):
        paced(Doing("fine-tuning", done, 30))

    assert [(round(at, 1), doing.kind, doing.done) for at, doing in told] == [
        (100.0, "features", 0),
        (102.1, "features", 3),
        (104.2, "features", 6),
        (106.3, "features", 9),
        (106.3, "fine-tuning", 10),
        (106.3, "fine-tuning", 30),
    ]


def test_telling_takes_a_tenth_of_the_time_at_most() -> None:
    """Of a receiver that takes 3 s, as one whose database is away does."""
    told: list[int] = []
    now = 0.0

    def slowly(doing: Doing) -> None:
        nonlocal now
        told.append(doing.done)
        now += 3

    paced = Paced(slowly, every_s=2.0, clock=lambda: now)
    for done in range(60):  # a chunk a second
        paced(Doing("features", done, 1000))
        now += 1

    assert told == [0, 27, 54]


def test_what_the_receiver_raises_reaches_the_run() -> None:
    def end(doing: Doing) -> None:
        raise RuntimeError(doing.kind)

    with pytest.raises(RuntimeError, match="features"):
        Paced(end, every_s=2.0)(Doing("features", 0, 9))
