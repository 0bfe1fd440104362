"""What can go wrong with datasets."""

from app.errors import Conflict, NotFound, Unprocessable, Uses


class DatasetNotFound(NotFound):
    """No such dataset."""

    title = "Dataset not found"

    def __init__(self) -> None:
        super().__init__("There is no such dataset.")


class ExampleNotFound(NotFound):
    """No such example in this dataset."""

    title = "Example not found"

    def __init__(self) -> None:
        super().__init__("There is no such example in this dataset.")


class DatasetNameTaken(Conflict):
    """Another dataset is called that."""

    title = "Dataset name in use"

    def __init__(self, name: str, used_by: Uses) -> None:
        super().__init__(
            f'There is already a dataset called "{name}". Nothing was stored; choose another name.',
            used_by=used_by,
        )


class DatasetInUse(Conflict):
    """A campaign or a run needs this dataset."""

    title = "Dataset in use"

    def __init__(self, name: str, used_by: Uses) -> None:
        super().__init__(
            f'"{name}" cannot be deleted. Its images are needed by {used_by.in_words or "something else"}. '
            "Nothing was changed. Delete these first (a draft, a closed campaign without runs, a run that is "
            "over), or archive the dataset.",
            used_by=used_by,
        )


class ImportNotKept(Conflict):
    """There is no failed import whose file waits for a choice."""

    title = "Import not kept"

    def __init__(self, name: str) -> None:
        super().__init__(
            f'Nothing of the import of "{name}" waits for a choice. Nothing was changed; look at its state.'
        )


class DatasetNotReady(Conflict):
    """The dataset is still being imported, or its import failed."""

    title = "Dataset not ready"

    def __init__(self, name: str) -> None:
        super().__init__(f'The dataset "{name}" has no images yet: its import has not ended well.')


class BadUpload(Unprocessable):
    """What was sent is no file that a dataset can be made of."""

    title = "Not a dataset file"


class PathNotAllowed(Unprocessable):
    """The path is not a file below one of the folders that this server may import from."""

    title = "Path not allowed"

    def __init__(self) -> None:
        super().__init__(
            "This is not a file in one of the folders that the server may import from "
            "(CLARINET_DATASET_ROOTS)."
        )


class SizesDiffer(Unprocessable):
    """Images of different sizes cannot be put into one array without choosing a size."""

    title = "Image sizes differ"

    def __init__(self, name: str) -> None:
        super().__init__(f'The images of "{name}" differ in size; choose one size for all.')


class VersionNotFound(NotFound):
    """No such version of this dataset."""

    title = "Dataset version not found"

    def __init__(self) -> None:
        super().__init__("This dataset has no such version.")


class VersionPublished(Conflict):
    """Images that joined a dataset stay: campaigns and runs may rest on them."""

    title = "Images have joined"

    def __init__(self, number: int) -> None:
        super().__init__(
            f"These images have joined the dataset as version {number}, so they stay. Nothing was changed."
        )


class ClassesNotNumbers(Conflict):
    """Only classes that are called by their numbers can be given names."""

    title = "Classes have names"

    def __init__(self, name: str) -> None:
        super().__init__(
            f'The classes of "{name}" are no mere numbers, so they keep their names. Nothing was changed.'
        )


class BadClassNames(Unprocessable):
    """The names do not fit the numbers, or cannot be told apart."""

    title = "Class names do not fit"
