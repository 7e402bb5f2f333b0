"""The names of people, as pages show them."""

from typing import Protocol


class HasPersonName(Protocol):
    """A person with an optional first and last name."""

    @property
    def first_name(self) -> str | None: ...
    @property
    def last_name(self) -> str | None: ...


def sortable_name(person: HasPersonName) -> str | None:
    """`Kavanagh, Róisín`: the last name first, as lists are sorted; null for a person without a name."""
    names = [each.strip() for each in (person.last_name, person.first_name) if each and each.strip()]
    return ", ".join(names) or None


def display_name(person: HasPersonName, default: str | None = None) -> str:
    """A person's first and last name, or else the default."""
    names = [each.strip() for each in (person.first_name, person.last_name) if each and each.strip()]
    return " ".join(names) or default or "No name"
