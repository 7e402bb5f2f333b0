"""CONTRIBUTING lists all places that a new field of participants touches."""

import re
from collections.abc import Iterator

import pytest

from contract.sources import PROJECT
from plankeeper.http.public.documentation import SITE

MAX_PLACES = 7
# Existing fields that no rule and no filter uses: a new field stands in the same files.
FIELDS = ("pronouns", "preferred_name", "postal_statement")
MIGRATIONS = "src/plankeeper/database/migrations/versions"
# Files that contain one of the fields, but need no change for a new one.
OTHER_FILES = {
    "src/plankeeper/cli/sample_data/participants.py": "sample data doesn't have to fill every field",
    "src/plankeeper/console/components/labels.py": "a label is listed only if it differs from the humanised name",
    "src/plankeeper/console/participants/templates/macros.html": "the header shows only what people look for first",
    "src/plankeeper/console/participants/templates/fields.html": "the box that ends statements",
    "src/plankeeper/privacy/store.py": "the name beside a legal hold",
    "src/plankeeper/privacy/service.py": "an erasure removes every field that is not listed there",
    "src/plankeeper/imports/columns.py": "a column with the name of a field needs no alias",
    "src/plankeeper/imports/mapped_import.py": "what the rules about implausible values look at",
    "src/plankeeper/resources/participants/rules.py": "a rule about the names of a person",
    "src/plankeeper/console/participants/list.py": "the list has columns for what people compare",
    "src/plankeeper/resources/invoices/approval_store.py": "the names of people in mails",
    "src/plankeeper/resources/statement_runs/store.py": "who gets statements by post, and the names on letters",
    "src/plankeeper/resources/search/store.py": "the search looks at names and numbers only",
    "src/plankeeper/resources/search/schemas.py": "results show what tells people apart",
    "src/plankeeper/console/search/pages.py": "likewise",
    "docs/first-change.md": "the lines beside those that its steps add",
    "docs/api/events.md": "the example of an event updates this field",
}


def listed_places() -> list[list[str]]:
    """The files of each entry of the list."""
    text = (PROJECT / "CONTRIBUTING.md").read_text()
    section = text.partition("\n## Add a field to participants\n")[2].partition("\n## ")[0]
    entries = re.findall(r"^[0-9]+\. (.+)$", section, re.MULTILINE)
    return [[path for path in re.findall(r"`([^`]+)`", entry) if "/" in path or "." in path] for entry in entries]


def files_with(word: str) -> Iterator[str]:
    """The files of the package, the documentation and the API's description that contain a word."""
    folders = [PROJECT / "src", PROJECT / "docs"]
    paths = [path for folder in folders for path in folder.rglob("*") if path.suffix in (".py", ".html", ".md", ".sql")]
    paths = [path for path in paths if SITE not in path.parents]  # which is built from the documentation
    for path in [*paths, PROJECT / "openapi.json", PROJECT / "README.md"]:
        if re.search(rf"\b{word}\b", path.read_text()):
            name = path.relative_to(PROJECT).as_posix()
            yield MIGRATIONS if name.startswith(MIGRATIONS) else name


def test_the_list_is_short() -> None:
    places = listed_places()
    assert 0 < len(places) <= MAX_PLACES
    assert [each for each in places if not each] == []


@pytest.mark.parametrize("field", FIELDS)
def test_the_list_names_every_file_that_contains_a_field(field: str) -> None:
    listed = {path for place in listed_places() for path in place}
    assert listed == set(files_with(field)) - set(OTHER_FILES)


def test_no_exception_is_obsolete() -> None:
    assert {name for field in FIELDS for name in files_with(field)} >= set(OTHER_FILES)


@pytest.mark.parametrize("field", FIELDS)
def test_the_sql_names_a_column_once(field: str) -> None:
    text = (PROJECT / "src/plankeeper/resources/participants/store.py").read_text()
    assert len(re.findall(rf"\b{field}\b", text)) == 1
