"""Compares participant numbers and ABNs, which people write with and without spaces and hyphens."""

from typing import LiteralString


def number_key(column: LiteralString, digits: LiteralString) -> LiteralString:
    """What two texts have in common that are the same number: its digits if they are this many.

    Of another text, it is the text without spaces. The expressions are those of indexes.
    """
    found: LiteralString = f"regexp_replace({column}, '[^0-9]', '', 'g')"
    return f"(case when length({found}) = {digits} then {found} else replace({column}, ' ', '') end)"


def participant_number_key(column: LiteralString = "participant_number") -> LiteralString:
    return number_key(column, "9")


def abn_key(column: LiteralString = "abn") -> LiteralString:
    return number_key(column, "11")
