"""Counts in sentences: 1 label, 2 labels. Imports nothing."""


def many(count: int, one: str, several: str = "") -> str:
    """A number and what is counted; `several` is the plural where an s does not make it."""
    return f"{count:,} {one if count == 1 else several or f'{one}s'}"


def there_are(count: int, one: str, several: str = "") -> str:
    """There is 1 label, there are 2 labels; begins small."""
    return f"there {is_or_are(count)} {many(count, one, several)}"


def is_or_are(count: int) -> str:
    """The verb of so many."""
    return "is" if count == 1 else "are"
