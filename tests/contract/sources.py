"""The source code as data: its modules, their imports, and the SQL statements that they run."""

import ast
import builtins
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, cached_property
from importlib import import_module
from itertools import combinations, product
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import plankeeper
from plankeeper.database.combined_writes import Write
from plankeeper.database.lists.filtered_list import FilteredList, ListStatement, ListSummary
from plankeeper.database.lists.groups import ListGroup
from plankeeper.database.lists.statements import SortedId, SortOrder, Start

ROOT = Path(plankeeper.__file__).parent
PROJECT = Path(__file__).parents[2]

# The methods of plankeeper.database.client that run a statement; those that return rows take their type first.
WITHOUT_ROWS = ("execute", "lock_row", "queue_write")
METHODS = ("rows", "one", "one_or_none", "stream", *WITHOUT_ROWS)
_METHOD_NAME = re.compile(rf"\.\s*(?:{'|'.join(METHODS)})\b")

# Modules that run statements of other modules.
RUNS_FOR_OTHERS = {
    "database.client": "the methods themselves",
    "database.pool": "the connections that the methods use",
    "database.connections": "the same connections, whose statements are reported",
    "database.lists.filtered_list": "the statements of lists, which `composed_statements` returns",
    "resources.search.limits": "the statements of the search, with a condition: see test_limited_search",
    "database.migrations.env": "Alembic's lock",
    "database.migrations.versions": "a migration consists of SQL",
}


def parse_source(source: str) -> ast.Module:
    """The syntax tree of a module.

    CPython 3.11 counts the depth of all threads' trees in one counter, so that `ast.parse` fails when another thread
    parses at the same time. It is then tried again.
    """
    for _ in range(10):
        try:
            return ast.parse(source)
        except (SystemError, RecursionError):
            time.sleep(0.1)
    return ast.parse(source)


@dataclass(frozen=True)
class Module:
    """One file of the package; `name` is relative to it: `resources.participants.store`."""

    name: str
    path: Path
    source: str

    @cached_property
    def tree(self) -> ast.Module:
        return parse_source(self.source)

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """Every node of the tree."""
        return tuple(ast.walk(self.tree))


class Statement(NamedTuple):
    """A call that runs SQL. `sql` is null if it is not a constant, `values` if their number is unknown.

    `first` is the source of the first value.
    """

    module: str
    function: str
    line: int
    method: str
    shape: Any
    sql: str | None
    values: int | None
    first: str

    @property
    def name(self) -> str:
        return f"{self.module}.{self.function}"


@cache
def modules() -> tuple[Module, ...]:
    result: list[Module] = []
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        result.append(Module(".".join(parts), path, path.read_text()))
    return tuple(result)


@cache
def imports(module: Module) -> tuple[str, ...]:
    """Every module that a module imports, and every name that it imports from one (`a.b.name`)."""
    return tuple(_imports(module))


def _imports(module: Module) -> Iterator[str]:
    for node in module.nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module.name}: imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


@cache
def all_statements() -> tuple[Statement, ...]:
    """Every call of a method that runs SQL, in the whole package."""
    return tuple(
        _parse_statement(module, _enclosing_function(module, node), node)
        for module in modules()
        if _METHOD_NAME.search(module.source)
        for node in module.nodes
        # Starlette's `request.stream()` takes no statement.
        if isinstance(node, ast.Call) and node.args
        if isinstance(node.func, ast.Attribute) and node.func.attr in METHODS
    )


@cache
def filtered_lists() -> dict[str, FilteredList]:
    """Every list whose statements are composed, by its qualified name: `resources.participants.queries.LIST`."""
    using = [each for each in modules() if "FilteredList" in each.source]
    declaring = [each for each in using if "plankeeper.database.lists.filtered_list.FilteredList" in imports(each)]
    return {
        f"{module.name}.{name}": value
        for module in declaring
        for name, value in vars(import_module(f"plankeeper.{module.name}")).items()
        if isinstance(value, FilteredList)
    }


@cache
def composed_statements() -> tuple[Statement, ...]:
    """The statements of each list for sets of filters and for orders, with the text that the program composes."""
    result: list[Statement] = []
    for qualified_name, filtered_list in filtered_lists().items():
        module, _, name = qualified_name.rpartition(".")
        for case, shape, composed in list_statements(filtered_list):
            values = len(composed.values)
            result.append(
                Statement(module, f"{name}{case}", 0, "rows", shape, composed.text, values, "plan_manager_id")
            )
    return tuple(result)


def list_statements(filtered_list: FilteredList) -> Iterator[tuple[str, Any, ListStatement]]:
    """The totals, the summaries, and the pages of each order, forward and backward: a name, the type, the statement.

    Filters are conditions in a row, and an order is composed beside them, so each is there alone and with all others.
    """
    for values in filter_sets(filtered_list, 1):
        case = f"[{','.join(values)}]"
        yield f"{case}.count", int, filtered_list.count_statement(TENANT, values)
        yield f"{case}.summary", ListSummary, filtered_list.summary_statement(TENANT, values, 1)
        yield f"{case}.page", SortedId, filtered_list.page_statement(TENANT, values, (1, 0))
    none_and_all = filter_sets(filtered_list, 0)[:2]
    for values, key in product(none_and_all, filtered_list.group_keys):
        statement = filtered_list.group_statement(TENANT, values, key, 1, GROUP_PARAMETERS)
        yield f"[{','.join(values)}].{key}", ListGroup, statement
    for values in none_and_all:
        for order, start, is_backward in product(orders(filtered_list), STARTS, (False, True)):
            if start != NULL_START or filtered_list.sorts[order.name].is_nullable:
                case = f"[{','.join(values)}].{order}.{start}.{is_backward}"
                for offset in (0, 1):
                    place = (TENANT, values, (1, offset), order, start)
                    yield f"{case}.{offset}", SortedId, filtered_list.page_statement(*place, is_backward=is_backward)
                if start:
                    yield f"{case}.count", int, filtered_list.count_before_statement(TENANT, values, order, start)


TENANT = UUID(int=1)
# The parameters of the keys and the sums of groups, of all lists.
GROUP_PARAMETERS = {"zone": "Australia/Sydney", "late_before": datetime(2026, 11, 20, tzinfo=UTC)}
NULL_START = Start(None, "")
STARTS = (None, Start("", ""), NULL_START)


def orders(filtered_list: FilteredList) -> Iterator[SortOrder]:
    return (SortOrder(name, descending) for name in filtered_list.sorts for descending in (False, True))


def filter_sets(filtered_list: FilteredList, most: int = 2) -> list[dict[str, Any]]:
    """No filter, each filter alone with one and with several values, each pair, and all together."""
    names = list(filtered_list.filters)
    sets = [*(group for size in range(most + 1) for group in combinations(names, size)), tuple(names)]
    values = {name: _values(each.condition) for name, each in filtered_list.filters.items()}
    several: list[dict[str, Any]] = [{name: []} for name, each in filtered_list.filters.items() if each.several]
    return [{name: values[name] for name in group} for group in dict.fromkeys(sets)] + several


def _values(condition: str) -> Any:
    """A null for each placeholder: a condition with several takes a tuple."""
    numbers = {int(number) for number in re.findall(r"(?<!{){(\d)}", condition)}
    return (None,) * len(numbers) if len(numbers) > 1 else None


def store_statements() -> list[Statement]:
    return [*(each for each in all_statements() if not is_runner(each.module)), *composed_statements()]


def location_of(each: Statement) -> str:
    return f"{each.name}:{each.line}"


def is_runner(module: str) -> bool:
    return any(module == name or module.startswith(f"{name}.") for name in RUNS_FOR_OTHERS)


def _enclosing_function(module: Module, node: ast.Call) -> str:
    around = [each for each in _functions_of(module) if each.lineno <= node.lineno <= (each.end_lineno or 0)]
    return around[-1].name if around else ""


@cache
def _functions_of(module: Module) -> tuple[ast.FunctionDef | ast.AsyncFunctionDef, ...]:
    return tuple(node for node in module.nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def _parse_statement(module: Module, function: str, node: ast.Call) -> Statement:
    assert isinstance(node.func, ast.Attribute)
    has_row_type = node.func.attr not in WITHOUT_ROWS
    shape = _resolve(module, node.args[0]) if has_row_type and node.args else None
    rest = node.args[1:] if has_row_type else node.args
    sql, values = rest[0] if rest else None, rest[1:]
    literal = _literal(module, sql)
    counted = None if any(isinstance(value, ast.Starred) for value in values) else len(values)
    first = ast.unparse(values[0]) if values else ""
    return Statement(module.name, function, node.lineno, node.func.attr, shape, literal, counted, first)


def _literal(module: Module, node: ast.expr | None) -> str | None:
    """The text of a statement: a literal, or the value of a module's constant."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    value = _resolve(module, node) if node else None
    if isinstance(value, Write):
        return value.statement
    return value if isinstance(value, str) else None


@cache
def bulk_inserts() -> list[tuple[str, Any, Any]]:
    """Every call that appends many rows at once: its module, its table (null if it is not a literal), its row type."""
    result: list[tuple[str, Any, Any]] = []
    for module in [each for each in modules() if "insert_rows" in each.source]:
        for node in module.nodes:
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "insert_rows":
                table, shape = node.args[:2]
                literal = table.value if isinstance(table, ast.Constant) else None
                result.append((module.name, literal, _resolve(module, shape)))
    return result


def _resolve(module: Module, node: ast.expr) -> Any:
    """The value of a name in its module; null if the expression is not a name that the module defines."""
    if not isinstance(node, ast.Name):
        return None
    space = import_module(f"plankeeper.{module.name}") if not module.name.startswith("database.migrations") else None
    return getattr(space, node.id, getattr(builtins, node.id, None))
