"""Which passwords are refused: those that somebody guesses who knows people, or this person."""

import re
from collections.abc import Iterable

from app.accounts.errors import WeakPassword
from app.languages import gettext as _

MIN_PASSWORD_LENGTH = 10
LOOKED_AT = 72  # characters; zxcvbn takes no more, and its time grows with their square
MIN_GUESSES = 10**6  # which a guesser needs who knows the usual passwords and how people vary them
PRODUCT = ("clarinet", "password", "annotator", "admin", "sign in")
# What people put a year behind when a password must change: months, seasons and days of our languages.
CALENDAR = """
january february march april june july august september october november december
januar jänner februar märz maerz juni juli oktober dezember
enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre
janvier février fevrier mars avril mai juin juillet août aout septembre octobre novembre décembre decembre
spring summer autumn fall winter frühling fruehling frühjahr sommer herbst
primavera verano otoño otono invierno printemps été automne hiver
monday tuesday wednesday thursday friday saturday sunday
montag dienstag mittwoch donnerstag freitag samstag sonntag
lunes martes miércoles jueves viernes sábado domingo lundi mardi mercredi jeudi vendredi samedi dimanche
"""
# What people try first and zxcvbn's lists, of English, lack: rows of other keyboards, "password" in other
# languages, and the phrase that the whole world was told to take.
USUAL = """
qwertzuiopü qwertzuiop qwertz asdfghjklöä asdfghjklö yxcvbnm azertyuiop azerty qsdfghjklm wxcvbn qwertyuiop
йцукенгшщзхъ йцукенгшщз йцукен фывапролджэ фывапролд ячсмитьбю
passwort kennwort geheim contraseña contrasena motdepasse пароль парольпароль
correcthorsebatterystaple
"""
MIN_WORD = 3  # letters; shorter ones stand in any sentence
MIN_OWN = 5  # letters and digits that a password needs beside such words, digits at its ends not counted


def refuse_weak(password: str, context: Iterable[str] = ()) -> None:
    """Refuse a password that is short, common, one repeated character, or made of the person's own words.

    Takes some milliseconds: call it where no writer waits.

    Args:
        password: as typed.
        context: name, address and what else a guesser knows of the person and of the place.

    Raises:
        WeakPassword: the sentence says why.
    """
    if len(password) < MIN_PASSWORD_LENGTH:
        raise WeakPassword(
            _("A password needs at least {need} characters.").format(need=MIN_PASSWORD_LENGTH),
            need=MIN_PASSWORD_LENGTH,
        )
    if len(set(password)) == 1:
        raise WeakPassword(_("One character again and again is no password. Choose a sentence."))
    words = _words(context)
    if _is_mostly(password, sorted(CALENDAR.split(), key=len, reverse=True)):
        raise WeakPassword(_("A month, season or day with a number is among the first that people try."))
    usual = sorted([*USUAL.split(), *(name.replace(" ", "") for name in PRODUCT)], key=len, reverse=True)
    is_usual = _is_mostly(password, usual)
    if not is_usual and _is_mostly(password, words):
        raise WeakPassword(
            _("This password is made of a name or word that others know of you. Choose a sentence.")
        )
    if is_usual or _guesses(password, words) < MIN_GUESSES:
        raise WeakPassword(_("This password is among the first that people try. Choose a sentence."))


def _words(context: Iterable[str]) -> list[str]:
    """What is said of the person, in words and as a whole, longest first."""
    found = set(PRODUCT)
    for text in context:
        parts = re.findall(r"[^\W_]+", text.casefold())
        found |= {part for part in parts if len(part) >= MIN_WORD} | {"".join(parts)}
    return sorted(found - {""}, key=lambda word: (-len(word), word))


def _is_mostly(password: str, words: Iterable[str]) -> bool:
    """Whether little is left of a password without these words."""
    whole = "".join(re.findall(r"[^\W_]+", password.casefold()))
    own = whole
    for word in words:
        own = own.replace(word, "")
    return own != whole and len(own.strip("0123456789")) < MIN_OWN


def _guesses(password: str, words: list[str]) -> float:
    from zxcvbn import zxcvbn  # noqa: PLC0415  (its lists take 6 MB and 80 ms, and few processes need them)

    return float(zxcvbn(password[:LOOKED_AT], user_inputs=words)["guesses"])
