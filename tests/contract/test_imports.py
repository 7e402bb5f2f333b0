"""The allowed imports between packages, and that no packages import each other in a circle."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter

import pytest

from contract.sources import Module, imports, modules

# What each package may import besides itself. `plankeeper.__version__` is free.
ALLOWED: dict[str, set[str]] = {
    "database": set(),
    "core": {"database"},
    "http": {"core", "database"},
    "mail": {"core", "database"},
    "events": {"core", "database"},
    "webhooks": {"mail", "events", "core", "database"},
    "access": {"mail", "events", "core", "database"},
    "resources": {"mail", "access", "events", "core", "database"},
    "imports": {"resources", "events", "core", "database"},
    "privacy": {"resources", "access", "events", "core", "database"},
    "console": {"privacy", "imports", "resources", "access", "webhooks", "events", "http", "core", "database"},
}
# The server may import everything but the command line, which may import everything.
ALLOWED["server"] = set(ALLOWED)
ALLOWED["cli"] = set(ALLOWED)
ALLOWED["__main__"] = {"cli", "core"}
# Modules outside of `database` that deal with Citus. The list may only shrink.
ABOUT_CITUS = {
    "cli.backup",
    "cli.citus",
    "cli.progress",
    "events.backlog",
    "events.order_store",
    "events.sequencer",
    "webhooks.delivery_queue",
    "webhooks.endpoint_store",
    "webhooks.fan_out",
    "webhooks.worker",
}
# Packages whose routes import `http`, which their other modules don't.
WITH_ROUTES = {"events", "webhooks", "access", "resources"}
# Modules that only compute.
PURE_MODULES = {"rules", "warnings", "states", "policy", "retry_policy", "url_policy", "format", "tokens"}
# Modules that do input or output, which pure modules don't import.
IO_MODULES = {
    "asyncio",
    "asyncpg",
    "builtins",
    "httpx",
    "io",
    "logging",
    "os",
    "pathlib",
    "socket",
    "subprocess",
    "time",
}


def package_of(name: str, level: int = 1) -> str:
    """The package at a level, or the module if there is none: `resources`, `resources.search`, `access.policy`."""
    return ".".join(name.removesuffix(".__init__").split(".")[:level])


def own_imports(module: Module) -> Iterator[str]:
    """The modules of the package that a module imports: `mail.store`, also from `plankeeper.mail import store`."""
    module_names = {each.name for each in modules()}
    for name in imports(module):
        if name == "plankeeper" or not name.startswith("plankeeper."):
            continue
        inner = name.removeprefix("plankeeper.")
        imported = next(
            (part for part in _prefixes(inner) if part in module_names or f"{part}.__init__" in module_names), ""
        )
        if imported:
            yield imported


def _prefixes(name: str) -> Iterator[str]:
    parts = name.split(".")
    return (".".join(parts[:count]) for count in range(len(parts), 0, -1))


@cache
def all_imports() -> list[tuple[str, str]]:
    """Each module with each module that it imports."""
    return [(each.name, used) for each in modules() for used in own_imports(each)]


def is_routes(name: str) -> bool:
    return name.endswith("routes")


def find_cycle(edges: Iterable[tuple[str, str]]) -> list[str]:
    """The first circle of names that import each other, or an empty list."""
    graph = defaultdict[str, set[str]](set)
    for module, used in edges:
        if module != used:
            graph[module].add(used)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def test_packages_import_only_what_the_table_allows() -> None:
    pairs = {
        (module, used)
        for module, used in all_imports()
        if {package_of(module), package_of(used)} <= set(ALLOWED) and package_of(module) != package_of(used)
    }
    forbidden = {
        (module, used)
        for module, used in pairs
        if package_of(used) not in ALLOWED[package_of(module)]
        and not (package_of(used) == "http" and package_of(module) in WITH_ROUTES and is_routes(module))
    }
    assert forbidden == set()
    used_pairs = {(package_of(module), package_of(used)) for module, used in pairs}
    unused = {(name, each) for name, allowed in ALLOWED.items() for each in allowed} - used_pairs
    assert {name for name, _ in unused} <= {"server", "cli"}


def test_every_package_is_in_the_table() -> None:
    assert {package_of(each.name) for each in modules()} - {"__init__"} == set(ALLOWED)


@pytest.mark.parametrize("level", [1, 2])
def test_packages_do_not_import_each_other_in_a_circle(level: int) -> None:
    edges = {(package_of(module, level), package_of(used, level)) for module, used in all_imports()}
    assert find_cycle(edges) == []


def test_only_the_shell_of_the_console_imports_http() -> None:
    between = {
        package_of(module, 2)
        for module, used in all_imports()
        if (package_of(module), package_of(used)) == ("console", "http")
    }
    assert between == {"console.shell"}


# Packages of the console, each with those of the console that it imports. All others import these.
CONSOLE_LAYERS = {"shell": set[str](), "components": {"shell"}, "lists": {"shell", "components"}}
# Areas that import other areas.
CONSOLE_AREAS = {
    "claims": {"activity", "bank_details"},
    "developers": {"activity"},
    "imports": {"activity"},
    "invoices": {"activity", "notes"},
    "participants": {"activity", "bank_details", "invoices", "notes"},
    "payments": {"activity", "bank_details", "claims"},
    "people": {"participants"},
    "plans": {"home", "participants"},
    "providers": {"activity", "bank_details", "invoices", "notes"},
    "reports": {"home"},
    "search": {"developers"},
    "review": {"invoices", "notes"},
    "settings": {"activity", "invoices", "participants"},
    "statements": {"activity"},
    "views": {
        "activity",
        "claims",
        "developers",
        "invoices",
        "participants",
        "payments",
        "plans",
        "providers",
        "settings",
    },
}


def test_areas_of_the_console_import_few_other_areas() -> None:
    used_by: dict[str, set[str]] = {}
    for module, used in all_imports():
        if package_of(module) == package_of(used) == "console":
            area, other = (package_of(each, 2).removeprefix("console.") for each in (module, used))
            if area not in (other, "application"):
                used_by.setdefault(area, set()).add(other)
    assert {name: used_by.pop(name, set()) for name in CONSOLE_LAYERS} == CONSOLE_LAYERS
    others = {area: used - set(CONSOLE_LAYERS) for area, used in used_by.items()}
    assert {area: used for area, used in others.items() if used} == CONSOLE_AREAS


def test_modules_do_not_import_each_other_in_a_circle() -> None:
    assert find_cycle(set(all_imports())) == []


def test_a_cycle_is_found() -> None:
    assert set(find_cycle([("a", "b"), ("b", "c"), ("c", "a"), ("d", "a")])) == {"a", "b", "c"}
    assert find_cycle([("a", "b"), ("a", "c"), ("b", "c")]) == []


def test_pure_modules_only_compute() -> None:
    pure = [each for each in modules() if each.name.rpartition(".")[2] in PURE_MODULES]
    assert len(pure) >= 6
    impure = {
        (module.name, used)
        for module in pure
        for used in own_imports(module)
        if package_of(used) != "core" and used.rpartition(".")[2] != "schemas"
    }
    assert impure == set()
    assert {name.split(".")[0] for each in pure for name in imports(each)} & IO_MODULES == set()


def test_only_the_application_imports_routes() -> None:
    assert {module for module, used in all_imports() if is_routes(used)} == {"server.app"}


def test_only_the_command_line_imports_the_application() -> None:
    assert {package_of(module) for module, used in all_imports() if used == "server.app"} <= {"cli"}


def test_only_some_modules_know_about_citus() -> None:
    knowing = {
        module.name
        for module in modules()
        if package_of(module.name) != "database"
        if "is_citus" in module.source or "database.citus" in set(own_imports(module))
    }
    assert knowing == ABOUT_CITUS


def test_resources_import_their_parts_and_never_their_owners() -> None:
    between = {
        (package_of(module, 2), package_of(used, 2))
        for module, used in all_imports()
        if package_of(module) == package_of(used) == "resources"
    }
    for shared in ("parents", "users", "search", "upsert", "resource"):
        used_by_shared = {used for module, used in between if module == f"resources.{shared}"}
        assert used_by_shared <= {f"resources.{each}" for each in (shared, "upsert", "viewer_limits")}
    assert ("resources.participants", "resources.team_members") in between


def test_the_registry_knows_resources_by_one_module_each() -> None:
    used = {used for module, used in all_imports() if module == "resources.registry"}
    assert {each.split(".")[-1] for each in used if package_of(each) == "resources"} == {"resource"}
    assert used >= {
        each.name for each in modules() if each.name.startswith("resources.") and each.name[-9:] == ".resource"
    }
    using = {package_of(module, 2) for module, used in all_imports() if used == "resources.registry"}
    assert {each for each in using if package_of(each) == "resources"} == {"resources.undo", "resources.trash"}
