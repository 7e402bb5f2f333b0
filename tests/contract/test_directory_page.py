"""docs/directory-structure.md lists every module of the package."""

import re

import pytest

from contract.sources import PROJECT, ROOT

PAGE = (PROJECT / "docs/directory-structure.md").read_text()


def section(name: str) -> str:
    """The lines about a package: its own line and the tree below it."""
    match = re.search(rf"^{name}/ .*\n((?:[├└│ ].*\n)*)", PAGE, re.MULTILINE)
    return match[0] if match else ""


@pytest.mark.parametrize("package", sorted(path.name for path in ROOT.iterdir() if (path / "__init__.py").exists()))
def test_every_module_of_a_package_is_listed(package: str) -> None:
    modules = {path.stem for path in (ROOT / package).glob("*.py") if path.stem != "__init__"}
    listed = set(re.findall(r"\b[a-z_0-9]+\b", section(package)))
    assert modules - listed == set()


def test_every_module_at_the_top_is_listed() -> None:
    assert {path.name for path in ROOT.glob("*.py") if not path.name.startswith("__")} <= set(
        re.findall(r"\b\w+\.py\b", PAGE)
    )
