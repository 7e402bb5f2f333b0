"""Requirements for new passwords: their length, and that they are hard to guess.

Guessable are the 30,000 most common passwords of `zxcvbn`, names and words with digits around them, keyboard patterns,
sequences, dates and repetitions; also everything that consists mostly of words from the person's name and email and
from the plan manager's name.
"""

import re
import unicodedata
from collections.abc import Iterable
from functools import cache

from plankeeper.accounts.policy import MAX_PASSWORD_LENGTH, MIN_PASSWORD_LENGTH

MIN_GUESSES = 10**8  # zxcvbn's score of 3 of 4: "safely unguessable", with a slow hash
MIN_OWN_CHARACTERS = 8  # besides words that everybody knows of the person
MIN_WORD_LENGTH = 3
MAX_ESTIMATED_LENGTH = 40  # the time of an estimate grows with the square of the length

# Words that people here use in passwords, besides those in the lists of zxcvbn.
LOCAL_WORDS = ("plankeeper", "ndis", "plan", "manager", "provider", "participant", "australia")
_LEET = str.maketrans("@4831!0$57", "aabeiiosst")
_EDGE = re.compile(r"^[\W\d_]+|[\W\d_]+$")


def validate_password(password: str, email: str, names: Iterable[str] = ()) -> str | None:
    """The error message for a new password, or None if the password is acceptable.

    `names` are the person's and the plan managers'.
    """
    length_error = f"must be {MIN_PASSWORD_LENGTH} to {MAX_PASSWORD_LENGTH} characters long"
    if len(password) > 4 * MAX_PASSWORD_LENGTH:  # before the normalisation, which takes its time
        return length_error
    lower = unicodedata.normalize("NFKC", password).lower()
    if not MIN_PASSWORD_LENGTH <= len(lower) <= MAX_PASSWORD_LENGTH:
        return length_error
    if email.lower() in lower or lower in email.lower():
        return "must not be the email address"
    return "is too easy to guess" if is_guessable(lower, personal_words(email, *names)) else None


def personal_words(*texts: str) -> set[str]:
    """The words of names and emails that an attacker tries."""
    words = {word for text in texts for word in re.findall(r"[^\W\d_]+", text.lower()[:500])}
    return {word for word in words if len(word) >= MIN_WORD_LENGTH} | set(LOCAL_WORDS)


def is_guessable(lower: str, words: set[str]) -> bool:
    """Whether a password in lower case is common, or made of little more than the words."""
    from zxcvbn import zxcvbn  # loaded with the first new password: its lists take memory

    stem = _EDGE.sub("", lower)
    if not stem or {stem, stem.translate(_LEET)} & common_words():
        return True
    pattern = "|".join(map(re.escape, sorted(words, key=len, reverse=True)))
    if any(len(re.sub(pattern, "", text)) < MIN_OWN_CHARACTERS for text in (lower, lower.translate(_LEET))):
        return True
    return zxcvbn(lower[:MAX_ESTIMATED_LENGTH], user_inputs=sorted(words))["guesses"] < MIN_GUESSES


@cache
def common_words() -> frozenset[str]:
    """Common passwords, names and English words."""
    from zxcvbn.frequency_lists import FREQUENCY_LISTS

    return frozenset(word for words in FREQUENCY_LISTS.values() for word in words)
