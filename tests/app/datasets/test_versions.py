"""What a dataset holds in each version, and how files outside count its training images."""

from hypothesis import given
from hypothesis import strategies as st

from app.datasets.models import DatasetVersion
from app.datasets.versions import TrainRows


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)).filter(any), min_size=1, max_size=5))
def test_rows_count_the_training_images_in_the_order_in_which_they_joined(
    joined: list[tuple[int, int]],
) -> None:
    train = test = 0
    published: list[DatasetVersion] = []
    positions: list[int] = []
    for more_train, more_test in joined:
        start = train + test
        positions += range(start, start + more_train)
        train, test = train + more_train, test + more_test
        published.append(DatasetVersion(train_count=train, test_count=test))

    places = TrainRows(published)

    assert [places.row(position) for position in positions] == list(range(train))
    assert [places.position(row) for row in range(train)] == positions
