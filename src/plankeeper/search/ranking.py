"""The order of matches: whole words first, then beginnings of names, beginnings of words, and other parts."""

from collections.abc import Sequence


def rank(words: Sequence[str], text: str) -> tuple[int, int, str]:
    """The key to sort a match by; `text` is what the index holds of it."""
    known = text.split()
    phrase = " ".join(words)
    if all(word in known for word in words):
        place = 0
    elif text.startswith(f" {phrase}"):
        place = 1
    elif all(any(each.startswith(word) for each in known) for word in words):
        place = 2
    else:
        place = 3
    return place, len(set(known)), text
