"""Classes as text that people type: whatever is written is read as it was."""

from hypothesis import example, given
from hypothesis import strategies as st

from app.campaigns.class_text import read, written

NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1).map(str.strip)
names = st.one_of(
    NAMES.filter(bool),
    st.lists(st.sampled_from(['"', ": ", ":", "|", "a", "b c"]), min_size=1).map(
        lambda p: "".join(p).strip()
    ),
).filter(bool)
descriptions = st.lists(st.text(st.sampled_from('ab|": \t')), max_size=4).map(
    lambda lines: "\n".join(lines).strip()
)


@given(st.lists(st.tuples(names, descriptions), max_size=6))
@example([("size: large", ""), ("size: small", "two\n\n  lines: here"), ('"quoted"', "|")])
@example([("cat:", "x"), ("|", ""), ('a "b": c', "")])
def test_what_is_written_is_read_as_it_was(classes: list[tuple[str, str]]) -> None:
    assert read(written(classes)) == classes


def test_what_people_type_is_read() -> None:
    text = 'cat\n\n  dog : barks: loudly  \n| and bites\n"a: b": c\n"open\n'

    assert read(text) == [
        ("cat", ""),
        ("dog", "barks: loudly  \nand bites"),
        ("a: b", "c"),
        ('"open', ""),
    ]
