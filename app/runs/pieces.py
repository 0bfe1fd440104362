"""A rendered fragment, cut into its outermost elements, so that only those that changed need be sent."""

import re
from html.parser import HTMLParser

# Elements that no end tag follows.
VOID = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"}
)


class _Cutter(HTMLParser):
    """Notes where the outermost elements begin and end."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=False)
        self._starts = [0, *(found.end() for found in re.finditer("\n", html))]
        self._open: list[str] = []
        self._begun = 0
        self.spans: list[tuple[int, int]] = []
        self.feed(html)
        self.close()

    @property
    def _here(self) -> int:
        line, column = self.getpos()
        return self._starts[line - 1] + column

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        if not self._open:
            self._begun = self._here
        if tag not in VOID:
            self._open.append(tag)
        elif not self._open:
            self._end(self._here + len(self.get_starttag_text() or ""))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        if not self._open:
            self._begun = self._here
            self._end(self._here + len(self.get_starttag_text() or ""))

    def handle_endtag(self, tag: str) -> None:
        if tag not in self._open:
            return
        while self._open.pop() != tag:
            pass  # an element whose end tag may be left out
        if not self._open:
            self._end(self._here + len(f"</{tag}>"))

    def _end(self, place: int) -> None:
        self.spans.append((self._begun, place))


def pieces_of(html: str) -> tuple[str, ...]:
    """The outermost elements of a fragment, in order; text between them is left out."""
    return tuple(html[begin:end] for begin, end in _Cutter(html).spans)
