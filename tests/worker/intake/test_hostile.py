"""Files that mean harm, or are broken, are refused and leave nothing."""

from collections.abc import Callable

import pytest
from sqlalchemy.orm import Session

from app.datasets.models import Dataset, DatasetState
from app.stores.folder import FolderStorage
from tests.app.datasets.hostile import HOSTILE
from tests.app.datasets.refused import Hostile
from tests.worker.intake.conftest import examples_of, files_in
from worker.context import Context
from worker.intake import import_dataset

only_sqlite = pytest.mark.parametrize("engine", ["sqlite"], indirect=True)  # nothing of this reaches SQL


@only_sqlite
class TestHostileFiles:
    @pytest.mark.long(
        but=["name:absolute-sqlite", "archive:bomb-sqlite", "picture:png-cut-sqlite", "array:flat-sqlite"]
    )
    @pytest.mark.parametrize("case", HOSTILE.values(), ids=HOSTILE.keys())
    def test_it_is_refused_with_its_sentence_and_nothing_stays(
        self,
        case: Hostile,
        context: Context,
        session: Session,
        storage: FolderStorage,
        upload: Callable[..., Dataset],
    ) -> None:
        dataset = upload(case.make(), table=case.table)

        import_dataset(context, dataset.id)

        session.refresh(dataset)
        assert dataset.failure == case.sentence
        assert dataset.state is DatasetState.FAILED
        assert (dataset.claimed_until, dataset.train_count) == (None, 0)
        assert examples_of(session, dataset) == []
        # Where others of its files are good, what came waits for the admin's choice.
        kept = [dataset.upload["data"], dataset.upload.get("table", "")] if dataset.upload else [""]
        assert files_in(storage) == sorted(filter(None, kept))
        assert dataset.mend == ("skip_bad" if dataset.upload else None)
