"""`plankeeper bank-details`, and bank details in imports and exports of providers."""

import json
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest

from support.bank_details import ACCOUNT, OTHER_ACCOUNT, Office
from support.client import Client
from support.program import Done, run_plankeeper
from support.secret_keys import shared_key_file
from support.server import RunningServer


@pytest.fixture
def office(server: RunningServer, plan_manager_id: UUID, new_client: Callable[..., Client]) -> Office:
    return Office(server, plan_manager_id, new_client(plan_manager_id, scopes=("read", "write", "payments")))


def run(office: Office, *arguments: str) -> Done:
    settings = {
        "PLANKEEPER_DATABASE_URL": office.server.dsn,
        "PLANKEEPER_SECRET_KEY_FILE": str(shared_key_file()),
    }
    return run_plankeeper(*arguments, **settings)


def lines(office: Office, *arguments: str) -> list[str]:
    done = run(office, *arguments)
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout.splitlines()


def error(office: Office, *arguments: str) -> str:
    done = run(office, *arguments)
    assert done.returncode != 0, done
    return done.stderr.splitlines()[-1]


def test_proposals_are_listed_approved_and_rejected(office: Office) -> None:
    plan_manager = ("--plan-manager", str(office.plan_manager_id))
    proposal = office.propose(office.actor())
    [line] = lines(office, "bank-details", "list", *plan_manager)
    assert line.startswith(str(proposal))
    assert line.endswith(
        f"provider {office.provider_id}  Amber Physio: none -> ...678, proposed by Robin Hale; call 02 5550 1234"
    )
    office.client.put(f"/providers/{office.provider_id}", {"primary_phone_number": "0491 570 156"})
    [line] = lines(office, "bank-details", "list", *plan_manager)
    assert line.endswith("; call 02 5550 1234 (changed in the last 90 days; before: 02 5550 1234)")
    assert error(office, "bank-details", "approve", str(proposal)).startswith("Error: Missing option '--called-back'")
    blank = error(office, "bank-details", "approve", str(proposal), "--called-back", " ")
    assert blank == "Error: Invalid value for --called-back: must have 1 to 500 characters, and not be blank."
    assert lines(office, "bank-details", "approve", str(proposal), "--called-back", "Spoke to Sam") == [
        f"Approved: payments to provider {office.provider_id} go to ...678"
    ]
    assert office.endings() == ("678", None)
    rejected = office.propose(office.actor("Sam Ito"), OTHER_ACCOUNT)
    assert lines(office, "bank-details", "reject", str(rejected), "--reason", "Nobody there knows of it") == [
        f"Rejected: the bank details of provider {office.provider_id} stay as they were"
    ]
    assert lines(office, "bank-details", "list", *plan_manager) == []
    assert error(office, "bank-details", "approve", str(proposal), "--called-back", "Spoke to Sam") == (
        f"Error: No bank details wait for approval with the proposal {proposal}."
    )


def test_an_import_by_command_takes_effect_at_once_and_an_export_has_the_same_bytes(
    office: Office, tmp_path: Path
) -> None:
    file = tmp_path / "providers.csv"
    file.write_text(
        "id,entity_name,bank_bsb,bank_account_number,bank_account_name\n"
        f"{office.provider_id},Amber Physio,633-000,87654321,Amber Physio\n"
    )
    plan_manager = ("--plan-manager", str(office.plan_manager_id))
    office.propose(office.actor())
    lines(office, "import", "providers", str(file), *plan_manager)
    assert office.endings() == ("321", None)
    plain = lines(office, "export", "providers", *plan_manager)
    assert "bank_bsb" not in plain[0]
    assert "87654321" not in "".join(plain)
    for format_ in ("jsonl", "csv"):
        export = ("export", "providers", *plan_manager, "--with-bank-details", "--format", format_)
        first = run(office, *export).stdout
        assert "87654321" in first
        file.write_text(first, newline="")
        lines(office, "import", "providers", str(file), *plan_manager)
        assert run(office, *export).stdout == first
    assert json.loads(run(office, *export[:-1], "jsonl").stdout.splitlines()[0])["bank_bsb"] == "633000"
    assert "--with-bank-details" in error(office, "export", "participants", *plan_manager, "--with-bank-details")


def test_an_import_names_each_wrong_value(office: Office, tmp_path: Path) -> None:
    file = tmp_path / "providers.csv"
    file.write_text("entity_name,bank_bsb,bank_account_number,bank_account_name\nA,06,12345678,A\nB,062000,,B\nC,,,\n")
    done = run(office, "import", "providers", str(file), "--plan-manager", str(office.plan_manager_id))
    assert done.stderr.splitlines() == [
        "line 2: bank_bsb: must have six digits, such as 062-000",
        "line 3: bank_account_number: is required, because the row has bank_account_name or bank_bsb",
        "2 invalid lines: nothing was written.",
    ]
    assert ACCOUNT["account_number"] not in done.stderr
