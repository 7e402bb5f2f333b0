"""Words that differ by one letter."""

from collections.abc import Iterable


def has_slip(word: str, other: str) -> bool:
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
    """The searched words, each as it stands in a text or with the slip corrected; null if one is missing."""
    known, corrected = text.split(), list[str]()
    for word in words:
        similar = next((each for each in known if has_slip(word, each)), None)
        if any(each.startswith(word) for each in known):
            corrected.append(word)
        elif similar:
            corrected.append(similar)
        else:
            return None
    return " ".join(corrected)
