"""Whether labels of one image go together. Pure."""

from collections.abc import Sequence

from clarinet.files.label_table import LabelKind, LabelRow


def first_contradiction(rows: Sequence[LabelRow]) -> tuple[int, int] | None:
    """The places of the first label that cannot be true together with one before it, that one first.

    Two classes that an image is, or one that it is and is not. To be one and not another goes together.
    """
    is_: dict[int, int] = {}
    is_not: dict[tuple[int, int], int] = {}
    for place, row in enumerate(rows):
        about = row.position, row.class_
        said = is_.get(row.position)
        if row.kind == LabelKind.TRUE:
            if said is not None and rows[said].class_ != row.class_:
                return said, place
            if about in is_not:
                return is_not[about], place
            is_.setdefault(row.position, place)
        else:
            if said is not None and rows[said].class_ == row.class_:
                return said, place
            is_not.setdefault(about, place)
    return None


def repeated(rows: Sequence[LabelRow]) -> dict[int, int]:
    """The places of labels that say what an earlier one says, each with that one's place."""
    first: dict[tuple[int, str, int], int] = {}
    found: dict[int, int] = {}
    for place, row in enumerate(rows):
        before = first.setdefault((row.position, row.kind, row.class_), place)
        if before != place:
            found[place] = before
    return found


def said_of(row: LabelRow, names: Sequence[str]) -> str:
    """What a label says of its image; continues a sentence."""
    return f"{'' if row.kind == LabelKind.TRUE else 'not '}{names[row.class_]!r:.80}"
