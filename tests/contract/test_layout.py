"""The packages at the top, and the folders of tests, which are those of the packages."""

from contract.sources import PROJECT, ROOT

MAX_ENTRIES = 14
# Folders of tests of something else.
OTHER_FOLDERS = {"benchmarks"}


def test_there_are_few_packages_at_the_top() -> None:
    entries = {path.name for path in ROOT.iterdir() if path.name not in ("__init__.py", "__pycache__")}
    assert len(entries) <= MAX_ENTRIES


def test_the_folders_of_tests_mirror_the_packages() -> None:
    folders = {
        path.parent.relative_to(PROJECT / "tests" / tier).as_posix()
        for tier in ("api", "unit")
        for path in (PROJECT / "tests" / tier).rglob("test_*.py")
    }
    assert {"resources/participants", "core"} <= folders
    assert {each for each in folders if not (ROOT / each / "__init__.py").exists()} == OTHER_FOLDERS


def test_the_folders_of_console_tests_mirror_its_areas() -> None:
    tests, areas = (
        {path.parent.relative_to(root) for path in root.glob(pattern)}
        for root, pattern in ((PROJECT / "tests/console", "*/**/test_*.py"), (ROOT / "console", "*/__init__.py"))
    )
    modules = {path.relative_to(ROOT / "console").with_suffix("") for path in (ROOT / "console").glob("*/*.py")}
    assert areas <= tests <= areas | modules
    assert not list((PROJECT / "tests/console").glob("test_*.py"))
