"""A sweep tries every case, and names those that fail."""

import inspect
from typing import Any

import pytest

from support.sweeps import MAX_CHARACTERS, sweep


def test_a_sweep_names_each_case_that_fails_and_what_is_wrong() -> None:
    tried: list[str] = []

    @sweep("name", ["first", "second", "third", "fourth"])
    def check(fixture: list[str], name: str) -> None:
        fixture.append(name)
        assert name != "second"
        if name == "third":
            raise KeyError(name)

    assert list(inspect.signature(check).parameters) == ["fixture"]
    with pytest.raises(pytest.fail.Exception) as failure:
        check(fixture=tried)
    assert tried == ["first", "second", "third", "fourth"]
    summary, second, third = str(failure.value).splitlines()
    first_line = inspect.unwrap(check).__code__.co_firstlineno
    assert summary == "2 of 4 cases failed"
    assert second == f"second: line {first_line + 3}: assert 'second' != 'second'"
    assert third == f"third: line {first_line + 5}: KeyError: 'third'"


async def test_an_asynchronous_sweep_takes_several_values() -> None:
    tried: list[tuple[str, int]] = []

    @sweep("name, number", [("a", 1), ("b", 2)])
    async def check(name: str, number: int) -> None:
        tried.append((name, number))
        assert number == 1, "x" * 1000

    with pytest.raises(pytest.fail.Exception, match="1 of 2 cases failed\nb 2: line") as failure:
        await check()
    assert tried == [("a", 1), ("b", 2)]
    assert len(str(failure.value).splitlines()[1]) == MAX_CHARACTERS + 1


def test_a_sweep_without_failures_passes_and_one_without_cases_is_an_error() -> None:
    def check(case: Any) -> None:
        assert case

    sweep("case", [1], ids=str)(check)()
    with pytest.raises(AssertionError, match="check has no cases"):
        sweep("case", [])(check)
