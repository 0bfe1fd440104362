"""Lists of pictures, the confusion and the map, by cases worked by hand."""

from pathlib import Path

import numpy as np
import pytest

from app.mistakes.drawing import By, map_of, matrix_of
from app.mistakes.listing import Listing, Only, Order, Wanted, confusion_of, groups_of, predicted_counts
from app.mistakes.tables import _read
from app.registry.kept_pictures import Among, KeptPictures, likeliest
from app.stores.folder import FolderStorage
from tests.app.mistakes.kept import CLASSES, SOURCE, TEST, TRAIN, kept_of
from worker.predicting import columns_of

DOG, OWL, CAT, LAST = 0, 1, 2, 3  # rows of the test images, by their true class


@pytest.fixture
def kept() -> KeptPictures:
    return kept_of(
        {
            Among.TEST: ([11, 12, 13, 14], [1, 2, 0, 1], TEST),
            Among.TRAIN: ([21, 22, 23, 24], [-1] * 4, TRAIN),
            Among.SOURCE: ([31, 32], [0, -1], SOURCE),
        },
        map_rows=[4, 5, 8],
        map_places=[[0, 0], [2, 1], [1, 0]],
    )


def rows(kept: KeptPictures, among: Among = Among.TEST, **wanted: object) -> list[int]:
    details: dict[str, object] = {"among": among, **wanted}
    listing = Listing(kept, Wanted(**details), denied={23})  # type: ignore[arg-type]  # of several types
    found: list[int] = listing.rows.tolist()
    return found


def test_lists_have_what_was_asked_for_in_that_order(kept: KeptPictures) -> None:
    assert rows(kept) == [DOG, OWL, CAT, LAST]
    assert rows(kept, order=Order.SURE) == [LAST, DOG, OWL, CAT]  # 0.9, 0.8, 0.6, 0.5
    assert rows(kept, order=Order.UNSURE) == [CAT, OWL, DOG, LAST]  # 0.05, 0.3, 0.7, 0.84 before the second
    assert rows(kept, only=Only.MISTAKES, order=Order.SURE) == [LAST, OWL, CAT]
    assert rows(kept, true_class=1, predicted_class=0) == [LAST]
    assert rows(kept, predicted_class=0) == [OWL, LAST]
    assert rows(kept, only=Only.DISPUTED) == []
    # Of the third training image people say no; no true class is known there.
    assert rows(kept, Among.TRAIN, only=Only.MISTAKES) == rows(kept, Among.TRAIN, only=Only.DISPUTED) == [6]
    assert rows(kept, Among.SOURCE) == [8, 9]


def test_pages_join_without_a_gap_also_behind_what_the_list_has_no_more(kept: KeptPictures) -> None:
    everything = Listing(kept, Wanted(among=Among.TEST, order=Order.SURE), denied=())
    mistakes = Listing(kept, Wanted(among=Among.TEST, only=Only.MISTAKES, order=Order.SURE), denied=())

    first, after = everything.page(after=None, limit=2)
    rest, end = everything.page(after=after, limit=2)

    assert (first.tolist(), after) == ([LAST, DOG], DOG)
    assert (rest.tolist(), end) == ([OWL, CAT], None)
    assert mistakes.page(after=DOG, limit=5)[0].tolist() == [OWL, CAT]  # DOG is right, and no mistake
    assert everything.beside(DOG) == (LAST, OWL)
    assert everything.beside(LAST) == (None, DOG)
    assert everything.beside(CAT) == (OWL, None)
    assert mistakes.beside(DOG) == (LAST, OWL)


def test_the_confusion_counts_those_whose_class_is_known(kept: KeptPictures) -> None:
    assert confusion_of(kept, Among.TEST, 3) == [[0, 0, 1], [1, 1, 0], [1, 0, 0]]
    assert confusion_of(kept, Among.TRAIN, 3) is None
    assert confusion_of(kept, Among.SOURCE, 3) == [[1, 0, 0], [0, 0, 0], [0, 0, 0]]
    assert predicted_counts(kept, Among.TRAIN, 3) == [1, 1, 2]
    assert groups_of(kept) == {Among.TEST: 4, Among.TRAIN: 4, Among.SOURCE: 2}
    assert next(iter(groups_of(kept_of({Among.TRAIN: ([1], [-1], TRAIN[:1])})))) is Among.TRAIN


def test_of_equal_probabilities_the_first_class_is_predicted_and_few_of_many_are_kept() -> None:
    even = np.full((1, 40), 1 / 40, np.float32)
    classes, probabilities = likeliest(np.array([[0.5, 0.5, 0.0]], np.float32), pictures=1)

    assert classes.tolist() == [[0, 1, 2]]
    assert probabilities.tolist() == [[0.5, 0.5, 0.0]]
    assert likeliest(even, pictures=1)[0].tolist() == [list(range(10))]
    assert likeliest(even, pictures=1_000_000)[0].tolist() == [[0, 1, 2, 3, 4]]
    assert likeliest(even, pictures=10**9)[0].tolist() == [[0, 1]]


def test_a_map_keeps_proportions_and_tells_domains_and_classes_by_more_than_colour(
    kept: KeptPictures,
) -> None:
    by_domain, by_class = map_of(kept, CLASSES, by=By.DOMAIN), map_of(kept, CLASSES, by=By.CLASS)

    # Two wide and one high: from margin to margin across, half as much up, and up is up.
    places = {point.example_id: (point.x, point.y) for cloud in by_domain.clouds for point in cloud.points}
    assert places == {21: (14.0, 473.0), 22: (626.0, 167.0), 31: (320.0, 473.0)}
    assert [(key.words, key.count, key.is_hollow) for key in by_domain.keys] == [
        ("target", 2, False),
        ("source", 1, True),
    ]
    assert len({(key.colour, key.sign) for key in by_domain.keys}) == 2
    assert len({key.sign for key in by_domain.keys}) == 2
    assert [(key.words, key.count) for key in by_class.keys] == [("cat", 2), ("owl", 1)]
    chosen = map_of(kept, CLASSES, by=By.CLASS, only=2)
    assert [cloud.is_faint for cloud in chosen.clouds] == [True, True, False]
    assert chosen.clouds[-1].points[0].words == "target: owl, 40 %"
    looks = {map_of_class(label) for label in range(28)}
    assert len(looks) == 28


def map_of_class(label: int) -> tuple[str, str]:
    """Colour and sign of a class among thirty."""
    row = np.zeros((1, 30), np.float32)
    row[0, label] = 1
    kept = kept_of({Among.TRAIN: ([1], [-1], row.tolist())}, map_rows=[0], map_places=[[0, 0]])
    drawn = map_of(kept, [str(place) for place in range(30)], by=By.CLASS)
    assert drawn.repeats
    return drawn.clouds[0].colour, drawn.clouds[0].sign


def test_a_drawn_confusion_has_the_cells_that_are_not_empty() -> None:
    drawn = matrix_of([[3, 1], [0, 0]], ["cat", "a very long name of a class"])

    assert [(cell.x, cell.y, cell.count) for cell in drawn.cells] == [(150, 150, 3), (184, 150, 1)]
    assert [cell.shade for cell in drawn.cells] == [0.87, 0.5]
    assert drawn.rows[1][1] == "a very long name …"


def test_a_table_is_read_whatever_its_file_names_are_and_without_refused_pictures(tmp_path: Path) -> None:
    path = tmp_path / "predictions.csv"
    path.write_text(
        f"{','.join(columns_of(['cat', 'dog', 'owl']))}\r\n"
        '"a, ""b"".png",0,owl,0.100000,0.200000,0.700000,\r\n'
        "refused.png,1,,,,,It cannot be decoded.\r\n"
        ",2,cat,0.500000,0.300000,0.200000,\r\n"
    )

    positions, classes, probabilities = _read(
        FolderStorage(tmp_path), path.name, "digest", path.stat().st_size, 3
    )

    assert positions.tolist() == [0, 2]
    assert classes.tolist() == [[2, 1, 0], [0, 1, 2]]
    np.testing.assert_allclose(probabilities, [[0.7, 0.2, 0.1], [0.5, 0.3, 0.2]])
