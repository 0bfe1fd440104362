"""What files write where nobody knows the class: words, and numbers that stand for none of their classes."""

from collections.abc import Collection

from clarinet.files.names import NO_LABEL, plain_number, sameness

# How programs write that something is missing.
_WORDS = {"na", "n/a", "nan", "null", "none", "unknown", "no label", "nolabel", "unlabeled", "unlabelled"}
_WORDS |= {str(NO_LABEL), "-", "--", "?", "??"}
VOID = 255  # the largest number of a byte, which masks have where nothing is to be told


def means_missing(name: str) -> bool:
    """Whether a class is called as programs write that something is missing; it may be one all the same."""
    return sameness(name).strip("<>#").replace("_", " ") in _WORDS


def is_void(numbers: Collection[int]) -> bool:
    """Whether the largest of the numbers of classes is 255 and lies apart from the others, so that it may be
    none: a class before it has no image."""
    return VOID in numbers and max(numbers) == VOID and VOID - 1 not in numbers


def odd_number(names: Collection[str]) -> str | None:
    """Of classes that are all called by numbers, the one that may stand for none: -1, or 255 as `is_void`."""
    digits = {name: plain_number(name) for name in names if name.isascii() and name.isdigit()}
    others = set(names) - digits.keys()
    if others == {str(NO_LABEL)} and digits:
        return str(NO_LABEL)
    if others or len(digits) == 1 or any(len(one) > len(str(VOID)) for one in digits.values()):
        return None
    if not is_void({int(one) for one in digits.values()}):
        return None
    return next(name for name, number in digits.items() if number == str(VOID))


def is_called(name: str, no_label: str) -> bool:
    """Whether a class is what somebody said to stand for none; "" says nothing."""
    return bool(no_label) and sameness(name) == sameness(no_label)
