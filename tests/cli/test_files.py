"""Files through the program: what it prints of an import, and an export whose output goes nowhere."""

import csv
import fcntl
import io
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.client import Client
from support.cluster import SharedCluster
from support.program import environment, run_plankeeper
from support.server import RunningServer
from support.terminal import read_terminal


@pytest.fixture
def settings(cluster: SharedCluster) -> dict[str, str]:
    return {"PLANKEEPER_DATABASE_URL": cluster.dsn}


def test_a_table_is_exported_and_imported_through_standard_input(
    settings: dict[str, str], api: Client, import_rows: Callable[..., Any]
) -> None:
    import_rows(api, "providers", [{"entity_name": f"Zoë {n}", "abn": "1"} for n in range(30)])
    whose = ("--plan-manager", api.plan_manager_id)
    table = run_plankeeper("export", "providers", *whose, "--format", "csv", **settings)
    assert (table.returncode, table.stderr) == (0, "")
    assert table.stdout.startswith("id,entity_name,abn,email,active,")
    assert len(table.stdout.splitlines()) == 31

    # As a spreadsheet saves it.
    same = run_plankeeper("import", "providers", "-", *whose, stdin=table.stdout.encode("utf-8-sig"), **settings)
    assert (same.returncode, same.stdout) == (0, "providers: 30 lines: 0 created, 0 changed, 30 unchanged\n")
    reported = same.stderr.splitlines()
    assert reported[0] == "Warning: line 2: abn '1' is not 11 digits with a valid check digit"
    assert (len(reported), reported[-1]) == (11, "Warning: 20 more lines have warnings")


def test_an_export_with_formulas_warns_and_is_exact(
    settings: dict[str, str], api: Client, import_rows: Callable[..., Any]
) -> None:
    names = ['=HYPERLINK("https://evil.example","Click")', "+61 400 000 000", "-1", "@sum(A1)", "safe = yes", "\tx"]
    import_rows(api, "providers", [{"entity_name": name} for name in names])
    whose = ("--plan-manager", api.plan_manager_id)
    table = run_plankeeper("export", "providers", *whose, "--format", "csv", **settings)
    assert table.stderr == (
        "Warning: 5 values begin with =, +, - or @, and a spreadsheet that opens the file runs them as formulas: import"
        " its columns as text instead.\n"
    )
    assert [row["entity_name"] for row in csv.DictReader(io.StringIO(table.stdout, newline=""))] == names
    same = run_plankeeper("import", "providers", "-", *whose, stdin=table.stdout.encode(), **settings)
    assert same.stdout == "providers: 6 lines: 0 created, 0 changed, 6 unchanged\n"
    lines = run_plankeeper("export", "providers", *whose, **settings)
    assert (len(lines.stdout.splitlines()), lines.stderr) == (6, "")


def test_a_hundred_errors_are_shown_and_nothing_is_written(settings: dict[str, str], api: Client) -> None:
    table = "entity_name,state,active\n" + "".join(f"{n},x,{'true' if n % 2 else 'no'}\n" for n in range(300))
    done = run_plankeeper(
        "import", "providers", "-", "--plan-manager", api.plan_manager_id, stdin=table.encode(), **settings
    )
    assert (done.returncode, done.stdout) == (1, "")
    reported = done.stderr.splitlines()
    assert reported[:2] == [
        "line 2: active: must be true or false, not a string",
        "line 2: state: must be one of ACT, NSW, NT, QLD, SA, TAS, VIC, WA",
    ]
    assert reported[100:] == ["Only the first 100 errors are shown.", "300 invalid lines: nothing was written."]
    assert api.get("/providers").json()["pagination"]["total"] == 0


def test_an_export_to_a_closed_output_reports_it_or_ends_quietly(
    settings: dict[str, str], api: Client, import_rows: Callable[..., Any]
) -> None:
    import_rows(api, "providers", [{"entity_name": "x" * 250} for _ in range(1500)])
    command = [sys.executable, "-m", "plankeeper", "export", "providers", "--plan-manager", api.plan_manager_id]
    pipe, variables = subprocess.PIPE, environment(settings)
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, env=variables) as export:
        assert export.stdout
        assert export.stderr
        assert json.loads(export.stdout.readline())["entity_name"] == "x" * 250
        export.stdout.close()
        assert export.stderr.read() == b""
        assert export.wait(20) in (0, 1, -signal.SIGPIPE)
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(command, stdout=full, stderr=pipe, env=variables, check=False, timeout=60)
    assert done.returncode == 1
    assert done.stderr == b"Error: Cannot write to standard output: No space left on device.\n"


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_an_import_on_a_terminal_shows_the_progress(
    settings: dict[str, str], api: Client, tmp_path: Path, kind: str
) -> None:
    file = tmp_path / f"providers.{kind}"
    row = "x\n" if kind == "csv" else '{"entity_name": "x"}\n'
    # Two batches and a bit.
    file.write_text(("entity_name\n" if kind == "csv" else "") + row * 2001)
    terminal, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    command = [sys.executable, "-m", "plankeeper", "import", "providers", str(file)]
    with subprocess.Popen(
        [*command, "--plan-manager", api.plan_manager_id],
        stdout=theirs, stderr=theirs, env=environment(settings) | {"TERM": "xterm"},
    ) as done:  # fmt: skip
        os.close(theirs)
        shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", read_terminal(terminal))
    assert done.returncode == 0, shown
    assert "2,001 lines read 0:00:" in shown
    assert shown.splitlines()[-1] == "providers: 2,001 lines: 2,001 created, 0 changed, 0 unchanged"


@pytest.mark.parametrize("options, expected_events", [((), False), (("--notify",), True)])
def test_webhooks_are_sent_for_an_import_only_on_request(
    settings: dict[str, str], api: Client, server: RunningServer, options: tuple[str, ...], expected_events: bool
) -> None:
    row = b'{"entity_name": "x"}\n'
    done = run_plankeeper(
        "import", "providers", "-", "--plan-manager", api.plan_manager_id, *options, stdin=row, **settings
    )
    assert done.returncode == 0
    statement = "select notify from events where plan_manager_id = $1 and type = 'provider.created'"
    assert server.run(server.db.rows(bool, statement, api.plan_manager_id)) == [expected_events]
