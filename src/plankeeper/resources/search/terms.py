"""The terms of a search text: words, a number or the beginning of an email, as patterns of LIKE."""

import re
from collections.abc import Iterable

from msgspec import Struct

from plankeeper.resources.search.schemas import Kind

MAX_WORDS = 5
MIN_PART_LENGTH = 3  # letters of a part of a name; a shorter word must begin a name
MIN_PART_DIGITS = 4  # digits of a part of a number; a shorter number must be complete
MIN_SLIP_LENGTH = 5  # letters of a word in which a typo is corrected

# Also in the functions `search_text` and `search_keys` of the schema, which the indexes contain.
_NAME_SEPARATORS = str.maketrans(dict.fromkeys("|-'’.,/()&\"", " "))
_NUMBER_SEPARATORS = str.maketrans(dict.fromkeys(" -().,/_#"))
_TRIGRAM, _ALPHANUMERIC = re.compile("[a-z0-9]{3}"), re.compile("[a-z0-9]")
_ARABIC = re.compile("[\u0600-\u06ff]")
# Words of addresses that are often left out or shortened. They don't distinguish addresses.
_COMMON_ADDRESS_WORD = re.compile(
    "street|st|road|rd|avenue|ave?|drive|dr|court|ct|place|pl|close|cl|crescent|cres|lane|ln|parade|pde|highway|hwy"
    "|terrace|tce|boulevard|blvd|unit|act|nsw|nt|qld|sa|tas|vic|wa"
)
_LIKE_ESCAPES = str.maketrans({"\\": "\\\\", "%": "\\%", "_": "\\_"})


class SearchTerms(Struct, frozen=True):
    """A search text without accents and capitals, and its possible meanings."""

    text: str
    words: tuple[str, ...]  # of names; a number is one word without spaces
    number: str  # without spaces and punctuation, for numbers that can contain letters
    email: str | None  # the beginning of an email, unless it can't be one

    @property
    def latin_words(self) -> list[str]:
        """The words that are found by their parts, the longest first: it has the fewest matches."""
        return sorted((each for each in self.words if each.isascii()), key=len, reverse=True)

    @property
    def other_words(self) -> list[str]:
        """The words in scripts without trigrams, which are found by their beginnings."""
        return [each for each in self.words if not each.isascii()]

    @property
    def patterns_beside_key(self) -> list[str]:
        """The patterns of all words but the first in such a script, whose key is searched."""
        return [*map(part_pattern, self.latin_words), *map(_beginning_pattern, self.other_words[1:])]

    @property
    def address_words(self) -> list[str]:
        """The words that distinguish an address, the longest first; none without a name."""
        words = [each for each in self.latin_words if not _COMMON_ADDRESS_WORD.fullmatch(each)]
        has_name = any(len(each) >= MIN_PART_LENGTH and each.isalpha() for each in words)
        return words if has_name and not self.is_email and not self.other_words else []

    @property
    def words_with_typos(self) -> list[str]:
        """The words in which a typo is corrected."""
        return [each for each in self.words if len(each) >= MIN_SLIP_LENGTH and each.isascii() and each.isalpha()]

    def words_of(self, kind: Kind) -> list[str]:
        """The words for one kind: people have telephone numbers, invoices have numbers with letters.

        One letter alone begins too many of the names of team members and of the numbers of invoices.
        """
        if len(self.number) == 1 and kind in ("team_member", "invoice", "note"):
            return []
        if kind == "invoice":
            return [self.number] if self.number.isascii() and _ALPHANUMERIC.search(self.number) else []
        is_person = kind in ("participant", "team_member")
        return [self.phone] if is_person and self.is_number else self.latin_words

    @property
    def is_email(self) -> bool:
        return "@" in self.text

    @property
    def is_number(self) -> bool:
        return self.number.removeprefix("+").isdecimal()

    @property
    def is_empty(self) -> bool:
        return not self.words and not self.is_email

    @property
    def phone(self) -> str:
        """The number as telephone numbers are stored, which begin with 0 in place of 61."""
        digits = self.number.removeprefix("+").removeprefix("00")
        is_international = self.number.startswith(("+61", "0061")) or (len(digits) == 11 and digits.startswith("61"))
        return f"0{digits[2:]}" if is_international else self.number.removeprefix("+")


def parse(folded: str) -> SearchTerms:
    """The terms of a text that `fold` has returned."""
    number = folded.translate(_NUMBER_SEPARATORS)
    is_one_number = " " not in folded and any(each.isdecimal() for each in folded)
    if is_one_number or number.removeprefix("+").isdecimal():
        words = (number.removeprefix("+"),)
    else:
        parts = (
            each
            for each in folded.translate(_NAME_SEPARATORS).split()
            if not each.isascii() or _ALPHANUMERIC.search(each)
        )
        words = tuple(dict.fromkeys(parts))[:MAX_WORDS]
    return SearchTerms(folded, words, number, folded if " " not in folded and len(folded) >= MIN_PART_LENGTH else None)


def escape_like(text: str) -> str:
    """The text as a pattern of LIKE that matches only itself."""
    return text.translate(_LIKE_ESCAPES)


def part_pattern(word: str, min_digits: int = MIN_PART_DIGITS) -> str:
    """Any part of a name or number; of a shorter text the beginning of a name or the complete number."""
    if word.isdecimal() and len(word) < min_digits:
        return word_pattern(word)
    # Without three letters in a row, there is no trigram, and PostgreSQL would read every row.
    return f"%{escape_like(word)}%" if _TRIGRAM.search(word) else prefix_pattern(word)


def prefix_pattern(word: str) -> str:
    """The beginning of a word."""
    return f"% {escape_like(word)}%"


def _beginning_pattern(word: str) -> str:
    """The same in a script without trigrams; in Arabic also after the article, so anywhere."""
    return f"%{escape_like(word)}%" if _ARABIC.match(word) else prefix_pattern(word)


def word_pattern(word: str) -> str:
    """A whole word."""
    return f"% {escape_like(word)} %"


def has_typo(word: str, other: str) -> bool:
    """Whether two words differ by one letter: another one, one too many or too few, or two that changed places."""
    if word == other or abs(len(word) - len(other)) > 1:
        return False
    start = next((at for at, pair in enumerate(zip(word, other, strict=False)) if pair[0] != pair[1]), len(word))
    rest, other_rest = word[start:], other[start:]
    return (
        rest[1:] == other_rest[1:]
        or rest[1:] == other_rest
        or rest == other_rest[1:]
        or (rest[:2] == other_rest[1::-1] and rest[2:] == other_rest[2:])
    )


def correct(words: Iterable[str], text: str) -> str | None:
    """The searched words, each as in a text or with its typo corrected; null if one is missing."""
    known, corrected = text.split(), list[str]()
    for word in words:
        similar = next((each for each in known if has_typo(word, each)), None)
        if any(each.startswith(word) for each in known):
            corrected.append(word)
        elif similar:
            corrected.append(similar)
        else:
            return None
    return " ".join(corrected)
