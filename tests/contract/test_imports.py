"""Import direction: app → packages → http, database, events. A package imports only public modules of another."""

from collections.abc import Iterator

from contract.sources import Module, imports, modules

# Packages that import no feature package; `database` imports only itself.
FOUNDATION = {
    "server_folder",
    "http",
    "database",
    "encryption",
    "embedded_postgres",
    "events",
    "metrics",
    "slow_statements",
    "telemetry",
    "settings",
    "setting_parsers",
    "logs",
    "plausibility",
    "version",
    "",
}
# Packages that may import every feature package.
TOP_LEVEL = {"app", "background", "monitoring", "import_export", "cli", "console", "demo", "__main__"}
# Modules that only compute: they import nothing of the project.
PURE_MODULES = {"rules", "warnings", "policy", "format", "signing", "retry_policy", "tokens", "url_policy"}
# Modules of a feature package that another feature package may import.
PUBLIC_MODULES = PURE_MODULES | {"schemas", "store"}
# Modules that a pure module must not import.
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

# Imports of a foundation package from a feature package, with the reason.
UPWARD_EXCEPTIONS: dict[tuple[str, str], str] = {}
# Feature modules that import the top level, with the reason.
PROCESS_IMPORTS = {("webhooks.process", "background"): "the webhook worker's process runs the periodic tasks too"}
# Imports of other modules of a feature package, with the reason.
INTERNAL_EXCEPTIONS: dict[tuple[str, str], str] = {
    ("accounts.members", "api_keys.service"): "removing a member revokes the keys that the member created, with events",
    ("accounts.members", "saved_views.settings_store"): "the columns that a member has chosen go with the member",
    ("bin.service", "participants.service"): "a participant is deleted to the bin with its events, like elsewhere",
    ("bin.service", "participants.rows"): "the bin keeps the stored row",
    ("bin.service", "providers.service"): "so is a provider",
    ("bin.service", "team_members.restoration"): "a restored participant gets its team back",
    ("invoices.queries", "search.conditions"): "a part of a number is a filter of the list",
    ("mail.sender", "accounts.reset_link_store"): "the sender of mails deletes the expired links of mails",
    ("participants.queries", "search.filters"): "the search is a filter of the list",
    ("providers.queries", "search.filters"): "likewise",
    ("personal_data.person_export", "access_records.service"): "an export of a person is an event like other exports",
    ("personal_data.service", "saved_views.service"): "an erasure deletes the views that search for the participant",
    ("personal_data.service", "participants.service"): "an erasure deletes the participant like everybody else",
}


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
    assert {"participants.store", "participants.service", "http.routing"} <= set(own_imports(participants))


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


def test_the_console_imports_services_and_no_routes() -> None:
    console = [each for each in modules() if package_of(each.name) == "console"]
    used = {(module.name, name) for module in console for name in own_imports(module)}
    assert ("console.pages.participant_forms", "participants.service") in used
    assert {(module, name) for module, name in used if name.endswith(("routes", "_routes"))} == set()
