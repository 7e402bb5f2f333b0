"""The program as it is run: its exit status, its streams, and unexpected errors."""

import subprocess
import sys

from plankeeper.core.version import full_version
from support.client import Client
from support.cluster import SharedCluster, execute
from support.program import environment, run_plankeeper, run_program


def test_it_names_its_version_and_its_commands() -> None:
    assert run_program("--version") == (0, f"plankeeper, version {full_version()}\n", "")
    shown = run_plankeeper("--help")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "A plan manager's system of record" in shown.stdout


def test_what_is_refused_ends_with_1_and_what_is_misspelt_with_2(cluster: SharedCluster) -> None:
    own = {"PLANKEEPER_DATABASE_URL": cluster.dsn}
    nobody = "00000000-0000-0000-0000-000000000001"
    assert run_program("keys", "revoke", nobody, **own) == (
        1,
        "",
        f"Error: There is no key {nobody}. See `plankeeper keys list`.\n",
    )
    misspelt = run_plankeeper("keys", "lisp", **own)
    assert (misspelt.returncode, misspelt.stdout) == (2, "")
    assert "No such command 'lisp'" in misspelt.stderr


def test_a_file_comes_by_standard_input_and_goes_to_standard_output(cluster: SharedCluster, api: Client) -> None:
    own, whose = {"PLANKEEPER_DATABASE_URL": cluster.dsn}, ("--plan-manager", api.plan_manager_id)
    row = b"entity_name\nBanksia Care\n"
    taken = run_program("import", "providers", "-", *whose, stdin=row, **own)
    assert taken == (0, "providers: 1 lines: 1 created, 0 changed, 0 unchanged\n", "")
    table = run_plankeeper("export", "providers", *whose, "--format", "csv", **own)
    assert (table.returncode, table.stderr, len(table.stdout.splitlines())) == (0, "", 2)
    assert "Banksia Care" in table.stdout


def test_an_unforeseen_error_is_a_sentence_and_on_request_a_traceback(cluster: SharedCluster) -> None:
    dsn = cluster.new_database()
    execute(dsn, "alter table api_keys drop column name")
    own = {"PLANKEEPER_DATABASE_URL": dsn}
    brief = run_program("keys", "list", **own)
    assert (brief.returncode, brief.stdout) == (1, "")
    assert brief.stderr.endswith("Run `plankeeper --traceback ...` to see the traceback.\n")
    whole = subprocess.run(
        [sys.executable, "-m", "plankeeper", "--traceback", "keys", "list"],
        env=environment(own), capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (whole.returncode, whole.stdout) == (1, "")
    assert whole.stderr.startswith("Traceback (most recent call last):")
