"""What the files in a zip are called, where it does not say in which encoding its names are.

Names are UTF-8 where a flag says so, and else bytes of the system that packed them. These are read as UTF-8
if they can be, which chance does not make of others. Of the other encodings one is taken where it alone makes
words of every name: of each encoding those characters count that people use, and no word has two alphabets.
Where several do, the admin is asked.
"""

import re
import unicodedata
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from clarinet.files.refusal import Refused

UTF8_FLAG = 0x800
BEFORE_UNICODE = "cp437"  # as which zipfile reads names without that flag; each byte has its character
READINGS_SHOWN = 4
ACCENTED = 1  # letters with accents in a word that has no others


@dataclass(frozen=True, slots=True)
class Encoding:
    """An encoding of file names, and which of its characters are common.

    Args:
        title: what people call it.
        script: of its letters, as Unicode names begin.
        lead: the first bytes of its common characters of two bytes; None where one byte is a character.
    """

    title: str
    script: tuple[str, ...]
    lead: re.Pattern[bytes] | None = None


ENCODINGS = {
    "gb18030": Encoding("GBK, Chinese", ("CJK", "FULLWIDTH"), re.compile(rb"[\xa1-\xa3\xb0-\xd7]")),
    "big5": Encoding("Big5, Chinese", ("CJK", "FULLWIDTH"), re.compile(rb"[\xa1-\xa3\xa4-\xc6]")),
    "cp932": Encoding(
        "Shift-JIS, Japanese",
        ("CJK", "HIRAGANA", "KATAKANA", "FULLWIDTH"),
        re.compile(rb"[\x81-\x83\x88-\x97]"),
    ),
    "cp949": Encoding("EUC-KR, Korean", ("HANGUL",), re.compile(rb"[\xb0-\xc8]")),
    "cp437": Encoding("DOS, Western", ("LATIN",)),
    "cp850": Encoding("Windows Explorer, Western", ("LATIN",)),
    "cp866": Encoding("DOS, Cyrillic", ("CYRILLIC",)),
    "cp1252": Encoding("Windows, Western", ("LATIN",)),
    "cp1251": Encoding("Windows, Cyrillic", ("CYRILLIC",)),
}


class EncodingNotKnown(Refused):
    """Names that could be in several encodings; the admin can say which it is."""


def names_of(infos: Sequence[zipfile.ZipInfo], archive: str, *, encoding: str = "") -> tuple[list[str], str]:
    """The name of each member, and in which encoding those without a flag were read, "" where none was.

    Args:
        infos: of the members.
        archive: what a refusal calls the zip.
        encoding: of ENCODINGS, as the admin said; "" finds out.

    Raises:
        EncodingNotKnown: several could be, or none; or they are not in the one that the admin named.
    """
    # orig_filename, because zipfile cuts names at a NUL: "a.png\0.exe" would pass as "a.png".
    names = [info.orig_filename for info in infos]
    unsaid = {
        place: name.encode(BEFORE_UNICODE)
        for place, name in enumerate(names)
        if not name.isascii() and not infos[place].flag_bits & UTF8_FLAG
    }
    if not unsaid:
        return names, ""
    read = encoding or _encoding_of(list(unsaid.values()), archive)
    try:
        for place, raw in unsaid.items():
            names[place] = raw.decode(read)
    except UnicodeDecodeError as error:
        told = f"has names that are not in the encoding {title_of(read)}; say another"
        raise EncodingNotKnown(archive, told) from error
    return names, read


def title_of(encoding: str) -> str:
    """What people call an encoding of names."""
    return "UTF-8" if encoding == "utf-8" else ENCODINGS[encoding].title


def _encoding_of(names: Sequence[bytes], archive: str) -> str:
    if all(_decoded(name, "utf-8") is not None for name in names):
        return "utf-8"
    fitting = [encoding for encoding in ENCODINGS if all(_makes_words(name, encoding) for name in names)]
    meant = {tuple(name.decode(encoding) for name in names) for encoding in fitting}
    if len(meant) == 1:  # one alone fits, or all of them say the same
        return fitting[0]
    possible = fitting or [encoding for encoding in ENCODINGS if _decoded(names[0], encoding) is not None]
    readings = {encoding: _decoded(names[0], encoding) for encoding in possible}
    shown = [f'{ENCODINGS[encoding].title}: "{name}"' for encoding, name in readings.items()]
    told = "; ".join(shown[:READINGS_SHOWN])
    raise EncodingNotKnown(
        archive,
        f"does not say in which encoding its names are; one of them could be read as {told}. Say which",
    )


def _decoded(name: bytes, encoding: str) -> str | None:
    try:
        text = name.decode(encoding)
    except UnicodeDecodeError:
        return None
    return text if text.isprintable() else None


def _makes_words(name: bytes, encoding: str) -> bool:
    """Whether a name in this encoding is what people would call a file."""
    text, known = _decoded(name, encoding), ENCODINGS[encoding]
    if text is None:
        return False
    pieces = [(is_word, "".join(letters)) for is_word, letters in groupby(text, key=str.isalpha)]
    if known.lead is None:
        return all(_is_word(piece, known.script) if is_word else piece.isascii() for is_word, piece in pieces)
    pairs = [c.encode(encoding) for c in text if not c.isascii()]
    are_common = all(len(pair) == 2 and known.lead.match(pair) for pair in pairs)  # noqa: PLR2004 - bytes
    return are_common and all(_is_of(piece, known.script) for is_word, piece in pieces if is_word)


def _is_of(word: str, scripts: Sequence[str]) -> bool:
    """Whether all letters but plain Latin ones are of these scripts."""
    names = [unicodedata.name(c, "") for c in word if not c.isascii()]
    return all(re.split("[ -]", name)[0] in scripts for name in names)


def _is_word(word: str, script: Sequence[str]) -> bool:
    """The same where a byte is a letter: no word has two alphabets, and in Latin few letters have accents."""
    foreign = sum(not c.isascii() for c in word)
    if foreign == 0:
        return True
    if any(one.islower() and not c.isascii() and c.isupper() for one, c in pairwise(word)):
        return False  # nobody writes so, and of bytes read wrongly it comes often
    is_whole = foreign == len(word)
    is_usual = is_whole if script == ("CYRILLIC",) else not is_whole or foreign <= ACCENTED
    return is_usual and _is_of(word, script)
