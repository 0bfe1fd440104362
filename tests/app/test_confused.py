"""Which classes are taken for which, where a table of all is too large for a page."""

from app.confused import MOST_IN_MATRIX, MOST_PAIRS, most_confused
from app.pages import templates


def drawn(classes: int) -> str:
    rows = [[10 if true == predicted else 0 for predicted in range(classes)] for true in range(classes)]
    rows[0][1], rows[2][1] = 5, 7
    source = (
        '{% import "macros/charts.html" as charts %}{{ charts.matrix("Which", names, rows, csv="/all.csv") }}'
    )
    return templates.env.from_string(source).render(
        names=[f"bird {place}" for place in range(classes)], rows=rows
    )


def test_the_pairs_with_most_pictures_come_first_and_right_ones_are_no_pair() -> None:
    found = most_confused([[90, 3, 7], [0, 4, 0], [7, 0, 0]])

    assert [(pair.true, pair.predicted, pair.pictures) for pair in found] == [(0, 2, 7), (2, 0, 7), (0, 1, 3)]
    assert [pair.share for pair in found] == [0.07, 1.0, 0.03]
    assert len(most_confused([[1] * 30] * 30)) == MOST_PAIRS


def test_a_few_classes_have_every_cell_and_many_a_list_with_a_way_to_all() -> None:
    few, many = drawn(MOST_IN_MATRIX), drawn(MOST_IN_MATRIX + 1)

    assert few.count("<td") >= MOST_IN_MATRIX**2
    assert "/all.csv" not in few
    assert many.count("<tr>") == 3  # the head and two pairs
    assert many.index("bird 2") < many.index("bird 0")
    assert 'href="/all.csv"' in many
