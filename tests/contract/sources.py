"""The source code as data: its modules, what they import, and the SQL statements that they run."""

import ast
import builtins
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import plankeeper

ROOT = Path(plankeeper.__file__).parent
PROJECT = Path(__file__).parents[2]

# The methods of plankeeper.database.client that run a statement; all but `execute` take the shape of a row first.
METHODS = ("rows", "one", "one_or_none", "stream", "execute")

# Where a statement that comes from elsewhere is run.
RUNS_FOR_OTHERS = {
    "database.client": "the methods themselves",
    "database.pool": "what they run on",
    "database.migrations.env": "Alembic's lock",
    "database.migrations.versions": "a migration is SQL as a whole",
}


class Module(NamedTuple):
    """One file of the package; `name` is relative to it: `participants.store`."""

    name: str
    path: Path
    tree: ast.Module


class Statement(NamedTuple):
    """A call that runs SQL. `sql` is null where it is no plain literal, `values` where they are not counted."""

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
        result.append(Module(".".join(parts), path, ast.parse(path.read_text())))
    return tuple(result)


def imports(module: Module) -> Iterator[str]:
    """Every module that a module imports, and every name that it imports from one (`a.b.name`)."""
    for node in ast.walk(module.tree):
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
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in METHODS
    )


def store_statements() -> list[Statement]:
    return [each for each in all_statements() if not is_runner(each.module)]


def location_of(each: Statement) -> str:
    return f"{each.name}:{each.line}"


def is_runner(module: str) -> bool:
    return any(module == name or module.startswith(f"{name}.") for name in RUNS_FOR_OTHERS)


def _enclosing_function(module: Module, node: ast.Call) -> str:
    around = [each for each in functions(module.tree) if each.lineno <= node.lineno <= (each.end_lineno or 0)]
    return around[-1].name if around else ""


def _parse_statement(module: Module, function: str, node: ast.Call) -> Statement:
    assert isinstance(node.func, ast.Attribute)
    has_row_type = node.func.attr != "execute"
    shape = _resolve(module, node.args[0]) if has_row_type and node.args else None
    rest = node.args[1:] if has_row_type else node.args
    sql, values = rest[0] if rest else None, rest[1:]
    literal = sql.value if isinstance(sql, ast.Constant) and isinstance(sql.value, str) else None
    counted = None if any(isinstance(value, ast.Starred) for value in values) else len(values)
    first = ast.unparse(values[0]) if values else ""
    return Statement(module.name, function, node.lineno, node.func.attr, shape, literal, counted, first)


def bulk_inserts() -> list[tuple[str, Any, Any]]:
    """Every call that appends many rows at once: its module, its table (null where it is no literal), its shape."""
    result: list[tuple[str, Any, Any]] = []
    for module in modules():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "insert_rows":
                table, shape = node.args[:2]
                literal = table.value if isinstance(table, ast.Constant) else None
                result.append((module.name, literal, _resolve(module, shape)))
    return result


def _resolve(module: Module, node: ast.expr) -> Any:
    """What a name at the place of a shape stands for in its module; null where it is no name of the module's."""
    if not isinstance(node, ast.Name):
        return None
    space = import_module(f"plankeeper.{module.name}") if not module.name.startswith("database.migrations") else None
    return getattr(space, node.id, getattr(builtins, node.id, None))
