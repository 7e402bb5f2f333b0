"""The names of statements, for the log of slow statements and for traces, which contain no SQL."""

import sys
from functools import cache, lru_cache

MAX_NAMES = 5000  # statements whose names are kept: those of the package, and the last ones that were composed

_composed: dict[str, str] = {}
_combined: dict[str, tuple[str, ...]] = {}  # few: services combine the same writes


def name_composed(statement: str, name: str) -> None:
    """Record the name of a statement that `database.filters` has composed."""
    if len(_composed) >= MAX_NAMES:
        del _composed[next(iter(_composed))]
    _composed[statement] = name


def name_combined(statement: str, parts: tuple[str, ...]) -> None:
    """Record the names of the statements that `database.combined_writes` has combined into one."""
    _combined[statement] = parts


@lru_cache(MAX_NAMES)
def statement_name(statement: str) -> str:
    """The constant of a statement, such as `events.store.GET`, or else its first words, such as `commit`."""
    if parts := _combined.get(statement):
        return " + ".join(map(statement_name, parts))
    return _composed.get(statement) or _constants().get(statement) or _abbreviate(statement)


@cache
def _constants() -> dict[str, str]:
    """Every constant of the modules that are imported now, by its value."""
    names: dict[str, str] = {}
    for module_name, module in list(sys.modules.items()):
        if module_name.startswith("plankeeper."):
            for name, value in vars(module).items():
                text = getattr(value, "statement", value)  # of a Write
                if name.isupper() and isinstance(text, str) and " " in text:
                    names.setdefault(text, f"{module_name.removeprefix('plankeeper.')}.{name}")
    return names


def _abbreviate(statement: str) -> str:
    """A short statement without its semicolon, such as `copy events`; of another one, the first word."""
    words = statement.rstrip(";").lower().split()
    return " ".join(words if len(words) <= 2 else words[:1])
