"""Classes as text that people type, and back: a line for each, "name" or "name: what it means".

A name in which a colon and a space follow each other stands in quotation marks, with those inside doubled. A
line that begins with | goes on with the description above it. What `written` writes, `read` reads as it was.
"""

from collections.abc import Iterable

FURTHER = "|"
MAX_TEXT = 1_000_000  # characters


def written(classes: Iterable[tuple[str, str]]) -> str:
    """The text of names with their descriptions, which may be empty."""
    return "\n".join(_written(name, description) for name, description in classes)


def read(text: str) -> list[tuple[str, str]]:
    """Names and descriptions of a text; nothing is checked."""
    found: list[tuple[str, list[str]]] = []
    for line in text.split("\n"):
        start = line.lstrip()
        if start.startswith(FURTHER) and found:
            found[-1][1].append(start.removeprefix(FURTHER).removeprefix(" "))
        elif start:
            name, description = _parted(start)
            found.append((name, [description]))
    return [(name, "\n".join(lines)) for name, lines in found]


def _written(name: str, description: str) -> str:
    if ": " in name or name.startswith(('"', FURTHER)):
        name = '"' + name.replace('"', '""') + '"'
    first, *further = description.split("\n")
    lines = [f"{name}: {first}" if description else name, *(f"{FURTHER} {line}" for line in further)]
    return "\n".join(lines)


def _parted(line: str) -> tuple[str, str]:
    """Name and description of a line; quotation marks that nothing closes belong to the name."""
    end = _end_of_quoted(line) if line.startswith('"') else None
    if end is not None:
        name, rest = line[1:end].replace('""', '"'), line[end + 1 :].rstrip()
        return name, line[end + 3 :] if rest else ""
    name, _, description = line.partition(": ")
    return name.rstrip(), description


def _end_of_quoted(line: str) -> int | None:
    """Where the mark is that closes a name, if then comes nothing or a description."""
    at = 1
    while (at := line.find('"', at)) > 0:
        if line[at + 1 : at + 2] == '"':
            at += 2
            continue
        rest = line[at + 1 :]
        return at if not rest.strip() or rest.startswith(": ") else None
    return None
