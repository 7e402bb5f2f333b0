"""Sweeps: tests of many cases, such as all of the project, each as one test that reports every case that fails."""

import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from traceback import extract_tb
from typing import Any

import pytest

MAX_CHARACTERS = 400  # of the line about a case


def sweep(names: str, cases: Iterable[Any], ids: Callable[[Any], str] | None = None) -> Callable[[Any], Any]:
    """Like `pytest.mark.parametrize`, but one test tries all cases, with the same fixtures.

    It is for cases that are computed from the project, such as all operations, and for examples that leave nothing
    behind. If some fail, the test fails with one
    line for each: its name, the line of the test, and what is wrong.
    """
    parameters = [name.strip() for name in names.split(",")]
    listed = [(each, each if len(parameters) > 1 else (each,)) for each in cases]
    name_of = ids or (lambda case: case if isinstance(case, str) else " ".join(map(str, case)))

    def decorate(test: Callable[..., Any]) -> Callable[..., Any]:
        assert listed, f"{test.__qualname__} has no cases"

        @wraps(test)
        def run(**fixtures: Any) -> None:
            failures: list[str] = []
            for case, values in listed:
                with _collect(failures, name_of(case)):
                    test(**fixtures, **dict(zip(parameters, values, strict=True)))
            _report(failures, len(listed))

        @wraps(test)
        async def run_async(**fixtures: Any) -> None:
            failures: list[str] = []
            for case, values in listed:
                with _collect(failures, name_of(case)):
                    await test(**fixtures, **dict(zip(parameters, values, strict=True)))
            _report(failures, len(listed))

        swept: Any = run_async if inspect.iscoroutinefunction(test) else run
        signature = inspect.signature(test)
        fixtures = [each for name, each in signature.parameters.items() if name not in parameters]
        swept.__signature__ = signature.replace(parameters=fixtures)
        return swept

    return decorate


@contextmanager
def _collect(failures: list[str], case: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # noqa: BLE001 - it is reported, and the other cases are tried too
        kind = "" if isinstance(error, AssertionError) else f"{type(error).__name__}: "
        message = " ".join(str(error).split())
        line = f"{case}: line {_line_in_test(error)}: {kind}{message}"
        failures.append(line if len(line) <= MAX_CHARACTERS else line[:MAX_CHARACTERS] + "…")


def _line_in_test(error: Exception) -> int | None:
    """The line of the test's own function. Before it come those of `_collect` and `run`."""
    return extract_tb(error.__traceback__)[:3][-1].lineno


def _report(failures: list[str], count: int) -> None:
    if failures:
        pytest.fail("\n".join([f"{len(failures)} of {count} cases failed", *failures]), pytrace=False)
