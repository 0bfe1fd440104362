"""Words for yes and no, in the languages that the product speaks and as programs write them. Pure."""

import re
import unicodedata
from dataclasses import dataclass, field

YES, NO, UNSURE = "yes", "no", "unsure"
# What a column that is called `answer` may say; letters of one language alone (j, o, s) are left out.
MEANS = {
    **dict.fromkeys(("yes", "y", "true", "t", "1", "ja", "oui", "si", "wahr", "vrai", "verdadero"), YES),
    **dict.fromkeys(("\u662f", "\u662f\u7684", "\u5bf9", "\u5c0d", "\u771f"), YES),
    **dict.fromkeys(("no", "n", "false", "f", "0", "nein", "non", "falsch", "faux", "falso"), NO),
    **dict.fromkeys(("\u5426", "\u4e0d", "\u4e0d\u662f", "\u4e0d\u5bf9", "\u9519", "\u5047"), NO),
    **dict.fromkeys(("unsure", "can't tell", "cannot tell", "unsicher", "incertain", "no se"), UNSURE),
    **dict.fromkeys(("inseguro", "\u4e0d\u786e\u5b9a", "\u4e0d\u77e5\u9053"), UNSURE),
}
# What else tells that a column answers something; of these nobody knows whether they are about the class.
_FURTHER = """
correct incorrect right wrong match mismatch accept reject accepted rejected approve approved agree disagree
positive negative pos neg ok okay nok nope yep yeah good bad valid invalid richtig korrekt correcto incorrecto
correcta incorrecta juste bien mal gut schlecht maybe vielleicht peut-etre quizas complementary
pass passed keep kept include included verified confirm confirmed is
-1 +1 0.0 +
\u6b63\u786e \u9519\u8bef \u0434\u0430 \u043d\u0435\u0442 sim nao nie nej nei nee \u306f\u3044
\u3044\u3044\u3048 \uc608 \uc544\ub2c8\uc694 \u0646\u0639\u0645 \u0644\u0627 evet hayir
\u2713 \u2714 \u2611 \u2717 \u2718 \u2716 \u2612 \u2705 \u274c \u274e \U0001f44d \U0001f44e \U0001f6ab \u26d4
"""
# Which deny: one alone tells it, among a few others that nobody knows; and in the name of a control.
_DENYING = """
not isnt isn't arent aren't doesnt doesn't nicht
incorrect wrong mismatch reject rejected rejects disagree nope nok invalid declined denied disapproved
drop dropped fail fails failed discard discarded exclude excluded unverified
incorrecto incorrecta \u9519\u8bef \u043d\u0435\u0442 nao nej nei \u3044\u3044\u3048 \uc544\ub2c8\uc694 hayir
\u2717 \u2718 \u2716 \u2612 \u274c \u274e \U0001f44e \U0001f6ab
"""
# What denies in the name of a control alone; as a word in a cell it may be about anything else.
_DENYING_IN_NAMES = """
no non never without false negative neg absent kein keine falsch ohne pas faux sans sin ninguno
none anti mistake mistakes error errors excluding
"""
# Words of which one in a cell of a few words turns around what the others say: "not verified", "is not".
_TURNING = {"not", "isnt", "isn't", "arent", "aren't", "doesnt", "doesn't", "nicht"}
_TURNED = 4  # words of such a cell
# The same where the word alone stands in names as well.
_TURNED_AS = {"n'est pas", "pas correct", "pas valide", "no es", "no correcto", "no correcta", "no valido"}
_TURNED_AS |= {"\u4e0d\u6b63\u786e", "\u4e0d\u5339\u914d", "\u4e0d\u7b26\u5408"}
# Cells that tell nothing of the kind all the same.
_NOTHING = {"not specified", "not available", "not applicable", "not known", "not set", "not given"}
# What stands in such columns beside them, and tells nothing.
_BESIDE = """
? ?? - -- \u2013 1.0 na n/a nan none null unknown skip skipped pending todo open done finished reviewed
checked unchecked new
"""
_TICKS = ({"x"}, {"*"})  # what stands in some cells of a column and is a box that somebody ticked
_FEW = 6  # different words in a column that judges
_SIDES = 3  # of a column that may judge in words that nobody knows
_LONGEST = 40  # characters of one
_SHADES = re.compile("[\ufe0e\ufe0f\U0001f3fb-\U0001f3ff]")  # of an emoji, which is the same in any


def plain_word(text: str) -> str:
    """A word without case, accents, spaces around it, a point behind it and an emoji's colour."""
    apart = _SHADES.sub("", unicodedata.normalize("NFKD", text.casefold()))
    return (
        "".join(c for c in apart if not unicodedata.combining(c)).strip().rstrip(".!").replace("\u2019", "'")
    )


_DENIALS = frozenset(map(plain_word, (*_DENYING.split(), *_TURNED_AS)))
_MORE = frozenset(map(plain_word, _FURTHER.split())) | _DENIALS
DENYING_IN_NAMES = _DENIALS.union(map(plain_word, _DENYING_IN_NAMES.split()))
_MARKS = frozenset(map(plain_word, _BESIDE.split()))
_LETTERS = frozenset("josvw")  # go with such words, and tell nothing alone
_LETTER = 1


def _denies(word: str) -> bool:
    words = word.split()
    is_turned = word not in _NOTHING and len(words) <= _TURNED and not _TURNING.isdisjoint(words)
    return word in _DENIALS or is_turned


def meaning(text: str) -> str | None:
    """YES, NO or UNSURE; None of what is not understood."""
    return MEANS.get(plain_word(text))


@dataclass(slots=True)
class Sayings:
    """What a column says, cell by cell: whether it answers something.

    It does where all that it says are words for yes and no, and marks for neither; or where one is that means
    nothing else, or that denies among a few others. Or where some cells are ticked and the others empty.
    """

    all_are: bool = True
    some_are: bool = False
    one_is: bool = False
    example: str = ""
    filled: int = 0
    in_order: bool = True  # that its cells are the numbers of the rows
    denial: str = ""  # the first
    has_empty: bool = False
    words: dict[str, str] = field(default_factory=dict)  # the first that differ, as they are written

    def add(self, text: str, row: int) -> None:
        """A further cell; `row` counts from 0."""
        word = plain_word(text)
        if not word:
            self.has_empty = True
            return
        self.filled += 1
        self.in_order &= text.strip() in {str(row), str(row + 1)}
        known = word in MEANS or word in _MORE or _denies(word)
        self.all_are &= known or word in _LETTERS or word in _MARKS
        if len(self.words) <= _FEW:
            self.words.setdefault(word[:_LONGEST], text.strip())
        if not self.denial and word not in MEANS and _denies(word):
            self.denial = text.strip()
        self.some_are |= known
        is_sure = word in MEANS and not word.isdigit() and (len(word) > _LETTER or not word.isascii())
        if not self.example and {word} in _TICKS:
            self.example = text.strip()
        if known and (not self.example or (is_sure and not self.one_is)):
            self.example = text.strip()
        self.one_is |= is_sure

    @property
    def answer(self) -> bool:
        """Whether the column says yes or no."""
        denies = bool(self.denial) and len(self.words) <= _FEW
        is_ticked = self.has_empty and set(self.words) in _TICKS
        is_said = self.one_is or denies or is_ticked or (self.all_are and self.some_are)
        return bool(self.filled) and is_said

    @property
    def sides(self) -> list[str]:
        """The values of a column that has two or three, as a judgement has; an empty cell is one.

        None of any other column.
        """
        values = [*self.words.values(), *([""] if self.has_empty and self.words else [])]
        return values if 1 < len(values) <= _SIDES else []
