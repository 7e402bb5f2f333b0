"""The format of participant numbers."""


def is_scheme_number(text: str) -> bool:
    """Whether a text consists of the 9 digits of a scheme number."""
    return len(text) == 9 and text.isascii() and text.isdecimal()
