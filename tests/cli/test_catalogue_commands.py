"""`plankeeper support-catalogue`: import, dry run and export."""

from pathlib import Path

from support.catalogues import NATIONAL_HEADERS, THERAPY, to_csv, to_xlsx
from support.cluster import as_owner
from support.program import Done, run_plankeeper

OTHER = THERAPY | {"Support Item Number": "07_001_0106_8_3", "Support Item Name": "Invented coordination"}


def run(dsn: str, *arguments: str, stdin: bytes | None = None) -> Done:
    settings = {"PLANKEEPER_DATABASE_URL": dsn, "PLANKEEPER_OWNER_DATABASE_URL": as_owner(dsn)}
    return run_plankeeper("support-catalogue", *arguments, stdin=stdin, **settings)


def test_a_file_is_imported_once_and_exported_as_it_is(dsn: str, tmp_path: Path) -> None:
    file = tmp_path / "catalogue.csv"
    file.write_bytes(to_csv(OTHER, THERAPY))
    summary = "support catalogue: 2 added, 0 changed, 0 unchanged"
    dry = run(dsn, "import", str(file), "--dry-run")
    assert dry == Done(0, f"{summary}. This was a dry run: nothing was written.\n", "")
    assert run(dsn, "import", str(file)) == Done(0, f"{summary}, revision 1\n", "")
    unchanged = Done(0, "support catalogue: 0 added, 0 changed, 2 unchanged, revision 1\n", "")
    assert run(dsn, "import", str(file)) == unchanged
    exported = run(dsn, "export")
    assert exported == Done(0, file.read_bytes().decode().replace("\r\n", "\n"), "")
    assert run(dsn, "import", "-", stdin=exported.stdout.encode()) == unchanged


def test_a_newer_file_adds_periods_and_names_items_that_it_lacks(dsn: str, tmp_path: Path) -> None:
    run(dsn, "import", "-", stdin=to_csv(OTHER, THERAPY))
    file = tmp_path / "catalogue.xlsx"
    file.write_bytes(to_xlsx(THERAPY | {"Start date": "20270701"}, headers=NATIONAL_HEADERS))
    done = run(dsn, "import", str(file))
    assert done.stdout == "support catalogue: 1 added, 0 changed, 0 unchanged, revision 2\n"
    assert done.stderr == (
        "Warning: 1 stored items that are in force today aren't in the file, and stay as they are: 07_001_0106_8_3."
        " To end one, import it with its last day as its End Date.\n"
    )
    ended = run(dsn, "import", "-", stdin=to_csv(OTHER | {"End Date": "20270630"}, THERAPY))
    assert ended.stdout == "support catalogue: 0 added, 1 changed, 1 unchanged, revision 3\n"
    lines = run(dsn, "export").stdout.splitlines()
    assert ",National," in lines[0]
    assert [line.split(",")[10:12] for line in lines[1:]] == [
        ["20260701", "20270630"], ["20260701", "99991231"], ["20270701", "99991231"]
    ]  # fmt: skip


def test_a_file_with_errors_changes_nothing(dsn: str, tmp_path: Path) -> None:
    content = to_csv(OTHER, THERAPY | {"ACT": "$1,321.777", "Quote": "?"}, THERAPY)
    assert run(dsn, "import", "-", stdin=content) == Done(
        1,
        "",
        "row 3, Quote: must be Y, N or empty\n"
        "row 3, ACT: must be a price such as $1,321.77, with at most two decimal places\n"
        "2 errors: nothing was written.\n",
    )
    file = tmp_path / "table.csv"
    file.write_bytes(b"no table")
    assert run(dsn, "import", str(file)).stderr == (
        f"Error: {file} has no column Support Item Number in its first 20 rows. Nothing was written.\n"
    )
    assert len(run(dsn, "export").stdout.splitlines()) == 1


def test_the_serving_role_cannot_import(dsn: str) -> None:
    done = run_plankeeper("support-catalogue", "import", "-", stdin=to_csv(THERAPY), PLANKEEPER_DATABASE_URL=dsn)
    assert (done.returncode, done.stdout) == (1, "")
    assert "doesn't own the tables: set PLANKEEPER_OWNER_DATABASE_URL" in done.stderr
