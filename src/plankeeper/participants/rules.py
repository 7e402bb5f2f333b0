"""What a participant's number looks like."""


def is_scheme_number(text: str) -> bool:
    """Whether a text has the 9 digits of a scheme number."""
    return len(text) == 9 and text.isascii() and text.isdecimal()
