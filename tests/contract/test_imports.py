"""Law 6: app → slices → edge, database, events; rules know nothing; a slice uses another by its front doors."""

from collections.abc import Iterator

from contract.sources import Module, imports, modules

# What every slice stands on. They know no slice; `database` knows nothing but itself.
GROUND = {"edge", "database", "events", "settings", "logs", ""}
# What stands upon the slices, and may use all of them.
ROOF = {"app", "background", "delivering", "metrics", "bulk", "cli", "console", "demo", "__main__"}
# What a slice may be used through by another.
DOORS = {"rules", "shapes", "store"}
# What would make a rule more than a computation.
OUTWARD = {"asyncio", "asyncpg", "builtins", "httpx", "io", "logging", "os", "pathlib", "socket", "subprocess", "time"}

# Imports of the ground that reach up.
REACHING_UP: dict[tuple[str, str], str] = {}
# Slices that use another otherwise than through its rules, shapes and store.
SIDE_DOORS: dict[tuple[str, str], str] = {}


def room(name: str) -> str:
    """The folder or file directly within the package: `participants`, `app`."""
    return name.split(".", maxsplit=1)[0] if name != "__init__" else ""


def own_imports(module: Module) -> Iterator[str]:
    """The modules of the package that a module imports: `participants.store`, also from `participants import store`."""
    known = {each.name for each in modules()}
    for name in imports(module):
        if name == "plankeeper" or not name.startswith("plankeeper."):
            continue
        inner = name.removeprefix("plankeeper.")
        found = next((part for part in _prefixes(inner) if part in known or f"{part}.__init__" in known), "")
        yield found.removesuffix(".__init__")


def _prefixes(name: str) -> Iterator[str]:
    parts = name.split(".")
    return (".".join(parts[:count]) for count in range(len(parts), 0, -1))


def slices() -> set[str]:
    return {room(each.name) for each in modules()} - GROUND - ROOF


def test_the_rooms_are_known() -> None:
    assert {"participants", "team_members", "api_keys", "users", "error_catalogue"} <= slices()
    assert {name for name in GROUND | ROOF if name} <= {room(each.name) for each in modules()}
    participants = next(each for each in modules() if each.name == "participants.routes")
    assert {"participants.store", "team_members.store", "edge.routes"} <= set(own_imports(participants))


def test_rules_import_nothing_of_ours_and_nothing_that_reaches_out() -> None:
    rules = [each for each in modules() if each.name.endswith(".rules")]
    assert len(rules) >= 3
    assert {each.name: [*own_imports(each)] for each in rules} == {each.name: [] for each in rules}
    assert {room(name) for each in rules for name in imports(each)} & OUTWARD == set()


def test_the_ground_knows_no_slice() -> None:
    reaching = {
        (module.name, used)
        for module in modules()
        if room(module.name) in GROUND
        for used in own_imports(module)
        if room(used) not in GROUND
    }
    assert reaching == set(REACHING_UP)


def test_the_database_knows_only_itself() -> None:
    beyond = {
        (module.name, used)
        for module in modules()
        if room(module.name) == "database"
        for used in own_imports(module)
        if room(used) != "database"
    }
    assert beyond == set()


def test_the_edge_knows_nothing_of_events() -> None:
    upward = {
        module.name
        for module in modules()
        if room(module.name) == "edge"
        for used in own_imports(module)
        if room(used) == "events"
    }
    assert upward == set()


def test_no_slice_knows_what_stands_upon_it() -> None:
    upward = {
        (module.name, used)
        for module in modules()
        if room(module.name) in slices()
        for used in own_imports(module)
        if room(used) in ROOF
    }
    assert upward == set()


def test_a_slice_uses_another_through_its_rules_shapes_or_store() -> None:
    used_otherwise = {
        (module.name, used)
        for module in modules()
        if room(module.name) in slices()
        for used in own_imports(module)
        if room(used) in slices() - {room(module.name)} and used.rpartition(".")[2] not in DOORS
    }
    assert used_otherwise == set(SIDE_DOORS)


def test_only_the_composition_root_and_the_ways_in_know_the_application() -> None:
    knowing = {module.name for module in modules() if "app" in set(own_imports(module))}
    assert {room(name) for name in knowing} <= {"cli"}
