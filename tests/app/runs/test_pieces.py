"""A fragment in pieces."""

import pytest

from app.runs.pieces import pieces_of


@pytest.mark.parametrize(
    ("html", "pieces"),
    [
        ("", ()),
        ("only words", ()),
        ("<p>a</p>\n  <div>b<div>c</div></div>", ("<p>a</p>", "<div>b<div>c</div></div>")),
        ("<hr><p>a<br>b</p>words<img src='x'/>", ("<hr>", "<p>a<br>b</p>", "<img src='x'/>")),
        ("<ul><li>a<li>b</ul><p>c</p>", ("<ul><li>a<li>b</ul>", "<p>c</p>")),
        ("<p>ä\n&lt;b&gt;</p>\r\n<p\nclass='a'>猫</p>", ("<p>ä\n&lt;b&gt;</p>", "<p\nclass='a'>猫</p>")),
        ('<p><script>"</p>"</script></p><svg><path d="M0"/></svg>', 2),
        ("<!-- <p> --><p>a</p></div><p>b</p>", ("<p>a</p>", "<p>b</p>")),
    ],
)
def test_its_outermost_elements_are_the_pieces(html: str, pieces: tuple[str, ...] | int) -> None:
    found = pieces_of(html)

    if isinstance(pieces, int):
        assert len(found) == pieces
        assert "".join(found) == html
    else:
        assert found == pieces
