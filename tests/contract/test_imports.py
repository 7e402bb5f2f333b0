"""Law 6: app → slices → edge, database, events; rules know nothing; a slice uses another by its front doors."""

from collections.abc import Iterator

from contract.sources import Module, imports, modules

# What every slice stands on. They know no slice; `database` knows nothing but itself.
FOUNDATION = {"http", "database", "embedded_postgres", "events", "settings", "logs", ""}
# What stands upon the slices, and may use all of them.
TOP_LEVEL = {"app", "background", "metrics", "import_export", "cli", "console", "demo", "__main__"}
# What a slice may be used through by another.
# Computations alone: they import nothing of ours.
PURE_MODULES = {"rules", "warnings", "policy", "format", "tokens"}
PUBLIC_MODULES = PURE_MODULES | {"schemas", "store"}
# What would make a rule more than a computation.
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

# Imports of the ground that reach up.
UPWARD_EXCEPTIONS: dict[tuple[str, str], str] = {}
# Slices that use another otherwise than through its rules, shapes and store.
# Feature packages that import the top level.
PROCESS_IMPORTS = {("webhooks.process", "background"): "the webhook worker's process runs the periodic tasks too"}
INTERNAL_EXCEPTIONS: dict[tuple[str, str], str] = {}


def package_of(name: str) -> str:
    """The folder or file directly within the package: `participants`, `app`."""
    return name.split(".", maxsplit=1)[0] if name != "__init__" else ""


def own_imports(module: Module) -> Iterator[str]:
    """The modules of the package that a module imports: `participants.store`, also from `participants import store`."""
    module_names = {each.name for each in modules()}
    for name in imports(module):
        if name == "plankeeper" or not name.startswith("plankeeper."):
            continue
        inner = name.removeprefix("plankeeper.")
        imported = next(
            (part for part in _prefixes(inner) if part in module_names or f"{part}.__init__" in module_names), ""
        )
        yield imported.removesuffix(".__init__")


def _prefixes(name: str) -> Iterator[str]:
    parts = name.split(".")
    return (".".join(parts[:count]) for count in range(len(parts), 0, -1))


def feature_packages() -> set[str]:
    return {package_of(each.name) for each in modules()} - FOUNDATION - TOP_LEVEL


def test_every_package_is_classified() -> None:
    assert {"participants", "team_members", "api_keys", "users", "error_catalogue"} <= feature_packages()
    assert {name for name in FOUNDATION | TOP_LEVEL if name} <= {package_of(each.name) for each in modules()}
    participants = next(each for each in modules() if each.name == "participants.routes")
    assert {"participants.store", "team_members.store", "http.routing"} <= set(own_imports(participants))


def test_rules_import_neither_the_project_nor_io() -> None:
    rules = [each for each in modules() if each.name.rpartition(".")[2] in PURE_MODULES]
    assert len(rules) >= 6
    assert {each.name: [*own_imports(each)] for each in rules} == {each.name: [] for each in rules}
    assert {package_of(name) for each in rules for name in imports(each)} & IO_MODULES == set()


def test_the_foundation_imports_no_feature_package() -> None:
    reaching = {
        (module.name, used)
        for module in modules()
        if package_of(module.name) in FOUNDATION
        for used in own_imports(module)
        if package_of(used) not in FOUNDATION
    }
    assert reaching == set(UPWARD_EXCEPTIONS)


def test_the_database_package_imports_only_itself() -> None:
    beyond = {
        (module.name, used)
        for module in modules()
        if package_of(module.name) == "database"
        for used in own_imports(module)
        if package_of(used) != "database"
    }
    assert beyond == set()


def test_the_http_package_does_not_import_events() -> None:
    upward = {
        module.name
        for module in modules()
        if package_of(module.name) == "http"
        for used in own_imports(module)
        if package_of(used) == "events"
    }
    assert upward == set()


def test_no_feature_package_imports_the_top_level() -> None:
    upward = {
        (module.name, used)
        for module in modules()
        if package_of(module.name) in feature_packages()
        for used in own_imports(module)
        if package_of(used) in TOP_LEVEL
    }
    assert upward == set(PROCESS_IMPORTS)


def test_packages_import_only_public_modules_of_each_other() -> None:
    used_otherwise = {
        (module.name, used)
        for module in modules()
        if package_of(module.name) in feature_packages()
        for used in own_imports(module)
        if package_of(used) in feature_packages() - {package_of(module.name)}
        and used.rpartition(".")[2] not in PUBLIC_MODULES
    }
    assert used_otherwise == set(INTERNAL_EXCEPTIONS)


def test_only_entry_points_import_the_application() -> None:
    knowing = {module.name for module in modules() if "app" in set(own_imports(module))}
    assert {package_of(name) for name in knowing} <= {"cli"}
