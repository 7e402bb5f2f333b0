"""Finds the fields of a page and their order, for its error summary."""

from collections.abc import Iterable, Mapping
from typing import TypeVar

from markupsafe import escape

T = TypeVar("T")


def has_id(content: str, name: str) -> bool:
    """Whether an element of the page has this id, so that a link can lead to it."""
    return _position(content, name) >= 0


def sort_by_position(messages: Mapping[str, T], content: str) -> Iterable[tuple[str, T]]:
    """The messages in the order of their fields on the page; those without a field come first."""
    return sorted(messages.items(), key=lambda each: _position(content, each[0]))


def _position(content: str, name: str) -> int:
    return content.find(f' id="{escape(name)}"')
