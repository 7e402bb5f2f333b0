"""No log line contains the text of an exception."""

import ast
from collections.abc import Iterator

from contract.sources import Module, functions, modules, parse_source

LEVELS = {"debug", "info", "warning", "error", "exception", "critical", "log"}
# Attributes that the project writes for the log, without data of requests.
SAFE_ATTRIBUTES = {"reason", "explanation", "detail", "strerror"}


def logging_modules() -> list[Module]:
    """The modules that could have log calls."""
    return [each for each in modules() if "log." in each.source]


def log_calls(tree: ast.AST) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in LEVELS:
            owner = node.func.value
            if (isinstance(owner, ast.Name) and owner.id == "log") or ast.unparse(owner) == "logs.log":
                yield node


def exception_names(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """The variables that hold an exception."""
    arguments = [*function.args.args, *function.args.kwonlyargs]
    names = {
        each.arg for each in arguments
        if each.annotation and ast.unparse(each.annotation).endswith(("Exception", "Error"))
    }  # fmt: skip
    return names | {node.name for node in ast.walk(function) if isinstance(node, ast.ExceptHandler) and node.name}


def texts_of_exceptions(tree: ast.AST) -> list[str]:
    """The parts of log calls that would write an exception's text."""
    found: list[str] = []
    for function in functions(tree):
        calls = [*log_calls(function)]
        names = exception_names(function) if calls else set[str]()
        for call in calls:
            values = [*call.args, *(each.value for each in call.keywords if each.arg != "exc_info")]
            for node in (inner for value in values for inner in ast.walk(value)):
                safe = {
                    id(inner.value) for value in values for inner in ast.walk(value)
                    if isinstance(inner, ast.Attribute) and inner.attr in SAFE_ATTRIBUTES
                }  # fmt: skip
                if isinstance(node, ast.Name) and node.id in names and id(node) not in safe:
                    found.append(f"{function.name}: {ast.unparse(call)}")
    return found


def test_log_calls_do_not_format_exceptions() -> None:
    assert {each.name: found for each in logging_modules() if (found := texts_of_exceptions(each.tree))} == {}


# Functions that pass on the event of their callers, who pass literals.
FORWARDED_EVENTS = {
    "log_start": "the events of two programs",
    "_warn_once": "the warnings about connections and proxies",
    "_reload_if_changed": "a literal that is too long for the call",
}


def is_literal(arguments: list[ast.expr]) -> bool:
    """Whether the arguments are an event that is the same each time, without values to put into it."""
    return len(arguments) == 1 and isinstance(arguments[0], ast.Constant)


def variable_events(tree: ast.AST) -> list[str]:
    """The functions with log calls whose event isn't the same each time."""
    return [
        function.name
        for function in functions(tree)
        for call in log_calls(function)
        if not is_literal(call.args[1:] if ast.unparse(call.func).endswith("log.log") else call.args)
    ]


def test_events_are_literals_whose_values_are_fields() -> None:
    assert {name for each in logging_modules() for name in variable_events(each.tree)} == set(FORWARDED_EVENTS)
    source = "def f():\n    log.info('a %s', 1)\n    log.info(f'{x}')\n    log.info('a')"
    assert variable_events(parse_source(source)) == ["f", "f"]


def test_this_test_finds_them() -> None:
    source = """
def f(error: Exception, other: MailError):
    log.warning("a %r", error)
    log.info(f"{other}")
    log.error("b", extra={"reason": other.reason}, exc_info=error)
    try: pass
    except OSError as problem:
        log.exception("c %s", str(problem))
"""
    assert [each.partition("log.")[2].partition("(")[0] for each in texts_of_exceptions(parse_source(source))] == [
        "warning", "info", "exception",
    ]  # fmt: skip


def test_there_are_log_calls() -> None:
    assert sum(1 for each in logging_modules() for _ in log_calls(each.tree)) > 15
