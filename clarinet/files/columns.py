"""What columns of tables about images are called, and what those that we hand out have in them. Pure.

One table for all who read such files: the images of an upload, label files, and labels from elsewhere.
"""

import re
from collections.abc import Collection, Mapping

FILENAMES = ("filename", "file")
PICTURES = ("image", "path")  # the same, where no column is called as above
IDS = ("id", "image_id")  # where there is no file name: one without its ending, as in tables of Kaggle

# As other programs write the export's types again: 3 as 3.0, and True in capitals.
OF_TYPE = {
    "int64": re.compile(r"-?\d+(?:\.0+)?"),
    "float64": re.compile(r"-?\d+(?:[.,]\d+)?(?:e[+-]?\d+)?|nan", re.IGNORECASE),
    "bool": re.compile("true|false", re.IGNORECASE),
}
# What the application hands out beside labels; of these nobody needs any. A label rests on an answer or more.
HANDED_OUT: Mapping[str, re.Pattern[str]] = {
    "example_id": OF_TYPE["int64"],
    "answers": re.compile(r"0*[1-9]\d*(?:\.0+)?"),
    "imported": OF_TYPE["bool"],
}
# What is read of labels by position, and needless beside labels by file name.
OF_POSITIONS: Mapping[str, re.Pattern[str]] = {
    "num_classes": OF_TYPE["int64"],
    "num_images": OF_TYPE["int64"],
    "probability": OF_TYPE["float64"],
    "excluded": re.compile(r"\d+(?: \d+)*"),
}
OURS = {**HANDED_OUT, **OF_POSITIONS}
NEARLY = {"answers": "answer"}  # ours, and nearly what others call another column
# What is told of a picture or of who labelled it, whatever it says: few different values answer nothing.
BESIDE_LABELS = frozenset({"annotator", "purpose", "split", "subset", "width", "height", "channels", "depth"})
# What is called so counts the rows, if its cells do.
_COUNTS = {"", "id", "image_id", "index", "idx", "nr", "row", "line", "number"}
_OF_PANDAS = re.compile(r"unnamed:_\d+")  # an index that was written without a name and read again


def of_files(columns: Collection[str]) -> list[str]:
    """Those that name the image's file, of the names that say it best; several could each be it."""
    for names in (FILENAMES, PICTURES, IDS):
        if found := [name for name in names if name in columns]:
            return found
    return []


def may_count_rows(name: str) -> bool:
    """Whether a column's name says that it counts rows, or says nothing; `name` as `column_name` gives it."""
    return name in _COUNTS or bool(_OF_PANDAS.fullmatch(name))
