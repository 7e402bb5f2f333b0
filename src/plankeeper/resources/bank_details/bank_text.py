"""Text, BSBs and account numbers as the files of banks (direct entry) can carry them."""

import re
import string
import unicodedata
from typing import NamedTuple

MAX_ACCOUNT_NAME = 32  # characters of the title of a payee's account
MAX_USER_NAME = 26
MAX_REMITTER = 16
MAX_DESCRIPTION = 12
MAX_ACCOUNT_NUMBER = 9
ENDING_LENGTH = 3  # digits of an account number that are shown

BANK_CHARACTERS = frozenset(string.ascii_letters + string.digits + " &',-./+$!%()*#=:?[]_^@")

# Characters that Unicode's decomposition doesn't convert.
_REPLACEMENTS = str.maketrans(
    {
        **dict.fromkeys('‘’‚‛′`´ʹʻʼ“”„‟″«»"', "'"),
        **dict.fromkeys("‐‑‒–—―−", "-"),
        **dict.fromkeys("{<", "("),
        **dict.fromkeys("}>", ")"),
        **dict.fromkeys("\\|⁄", "/"),
        **dict.fromkeys("•·", "."),
        ";": ",",
        "~": "-",
        "Æ": "AE",
        "æ": "ae",
        "Œ": "OE",
        "œ": "oe",
        "Ø": "O",
        "ø": "o",
        "Đ": "D",
        "đ": "d",
        "Ð": "D",
        "ð": "d",
        "Ł": "L",
        "ł": "l",
        "Þ": "Th",
        "þ": "th",
        "ß": "ss",
        "ẞ": "SS",
        "Ħ": "H",
        "ħ": "h",
        "ı": "i",
        "Ŧ": "T",
        "ŧ": "t",
    }
)


class BankText(NamedTuple):
    """A text as the file carries it: `text`, at most as long as its field.

    `lost` has the characters that no bank accepts and that are left out, each once. `cut` is the end that doesn't fit.
    """

    text: str
    lost: str = ""
    cut: str = ""


def to_bank_text(text: str, max_length: int | None = None) -> BankText:
    """Transliterate a text to the characters of banks, with single blanks, and cut it to the length of its field."""
    replaced = unicodedata.normalize("NFKD", text.translate(_REPLACEMENTS)).translate(_REPLACEMENTS)
    letters = ["" if unicodedata.category(each) in ("Mn", "Cf") else each for each in replaced]
    spaced = [" " if each.isspace() else each for each in letters]
    lost = "".join(dict.fromkeys(each for each in "".join(spaced) if each not in BANK_CHARACTERS))
    carried = " ".join("".join(each for each in spaced if each == "" or each in BANK_CHARACTERS).split())
    if max_length is None or len(carried) <= max_length:
        return BankText(carried, lost)
    return BankText(carried[:max_length].rstrip(), lost, carried[max_length:].strip())


_BSB = re.compile(r"[0-9]{3}[ -]?[0-9]{3}")


def parse_bsb(text: str) -> str | None:
    """The six digits of a BSB, which can have a hyphen or a blank in the middle; None for any other text."""
    text = text.strip()
    return re.sub("[ -]", "", text) if _BSB.fullmatch(text) else None


def format_bsb(bsb: str) -> str:
    """`062-000`."""
    return f"{bsb[:3]}-{bsb[3:]}"


def parse_account_number(text: str) -> str | None:
    """The 1 to 9 digits of an account number, without blanks and hyphens; None for any other text."""
    number = re.sub("[ -]", "", text)
    is_valid = number.isascii() and number.isdigit() and len(number) <= MAX_ACCOUNT_NUMBER and set(number) != {"0"}
    return number if is_valid else None


def account_ending(number: str) -> str:
    """The last digits of an account number, which are shown instead of it."""
    return number[-ENDING_LENGTH:]
