"""Every dependency has a record of why it was chosen."""

import re
import tomllib

from support.pages import PROJECT, pages, text_of


def _dependencies() -> set[str]:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())
    named = [*project["build-system"]["requires"], *project["project"]["dependencies"]]
    named += [each for extra in project["project"]["optional-dependencies"].values() for each in extra]
    return {re.split(r"[^\w-]", each, maxsplit=1)[0] for each in named}


def _decision_pages() -> list[str]:
    return [page for page in pages() if re.search(r"decisions/\d{4}-", page)]


def test_every_dependency_is_named_in_a_decision() -> None:
    dependencies = _dependencies()
    assert {"asyncpg", "hatchling", "pytest"} <= dependencies
    reported = "\n".join(text_of(page) for page in _decision_pages())
    missing = [name for name in sorted(dependencies) if not re.search(rf"`{re.escape(name)}`", reported)]
    assert not missing, f"docs/decisions names no {', '.join(missing)}"


def test_decisions_are_numbered_without_gaps_and_fit_on_one_page() -> None:
    numbers = [int(page.rsplit("/", 1)[1][:4]) for page in _decision_pages()]
    assert numbers == list(range(1, len(numbers) + 1))
    for page in _decision_pages():
        assert len(text_of(page).splitlines()) <= 50, f"{page} is longer than a page"


def test_the_index_lists_every_decision() -> None:
    listed = re.findall(r"\]\((\d{4}-[\w-]+\.md)\)", text_of("docs/decisions/README.md"))
    assert listed == [page.rsplit("/", 1)[1] for page in _decision_pages()]
