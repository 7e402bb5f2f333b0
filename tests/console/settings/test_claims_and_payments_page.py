"""The settings of claims and payments, on their page and by command."""

from decimal import Decimal
from uuid import UUID

from plankeeper.resources.office_settings import service, store
from support.console import Browser, main_text
from support.program import run_plankeeper
from support.secret_keys import shared_key_file
from support.server import RunningServer

PAGE = "/console/settings/claims-and-payments"
FORM = {
    "registration_number": "4050000000",
    "abn": "89 000 000 019",
    "prices_include_gst": "no",
    "result_tolerance": "0.05",
    "days_until_claim_is_late": "7",
    "bank_letters": "bql",
    "bank_bsb": "999-002",
    "bank_account_number": "87654321",
    "bank_account_name": "Sämple Plan Managers of the Wide Coast",
    "direct_entry_user_id": "301",
    "direct_entry_user_name": "Sample Plan Managers",
    "direct_entry_description": "PROVIDERS 李",
    "remitter": "Sample Plans",
    "has_balancing_record": "true",
    "group_payments_by": "invoice",
    "max_payments_in_file": "300",
    "needs_second_person": "true",
}


def test_the_settings_are_saved_with_the_account_encrypted(
    owner: Browser, server: RunningServer, plan_manager_id: UUID
) -> None:
    assert owner.submit(PAGE, FORM).status_code == 303
    saved = server.run(store.get(server.db, plan_manager_id))
    stored = {
        "abn": "89000000019",
        "prices_include_gst": False,
        "result_tolerance": Decimal("0.05"),
        "days_until_claim_is_late": 7,
        "bank_letters": "BQL",
        "bank_bsb": "999002",
        "direct_entry_user_id": "000301",
        "has_balancing_record": True,
        "max_payments_in_file": 300,
        "needs_second_person": True,
    }
    names = set(FORM) - {"bank_account_number"}
    assert {name: getattr(saved, name) for name in names} == {name: (FORM | stored)[name] for name in names}
    assert (saved.bank_account_ending, saved.needs_receipts) == ("321", False)
    assert "87654321" not in (server.run(store.get_account(server.db, plan_manager_id)) or "")
    number = server.run(service.get_account_number(server.db, server.settings, plan_manager_id))
    assert number == "87654321"
    text = main_text(owner.get(PAGE).text)
    assert "The bank’s file has “ Sample Plan Managers of the Wide ”; cut: “ Coast ”" in text
    assert "The bank’s file has “ PROVIDERS ”; left out: 李" in text
    assert "The stored number ends in 321." in text
    assert "87654321" not in owner.get(PAGE).text


def test_an_empty_number_keeps_the_account_and_an_empty_bsb_removes_it(
    owner: Browser, server: RunningServer, plan_manager_id: UUID
) -> None:
    owner.submit(PAGE, FORM)
    owner.submit(PAGE, FORM | {"bank_account_number": ""})
    number = service.get_account_number(server.db, server.settings, plan_manager_id)
    assert server.run(number) == "87654321"
    assert owner.submit(PAGE, FORM | {"bank_account_number": "12344321"}).status_code == 303
    number = service.get_account_number(server.db, server.settings, plan_manager_id)
    assert server.run(number) == "12344321"
    # The event says so, although the last digits are the same.
    statement = """
        select previous ->> 'bank_account_changed' || ' ' || (data ->> 'bank_account_changed') from events
        where plan_manager_id = $1 and type = 'plan_manager.updated' order by id desc limit 1
    """
    assert server.run(server.db.one(str, statement, plan_manager_id)) == "false true"
    owner.submit(PAGE, FORM | {"bank_bsb": "", "bank_account_number": ""})
    assert server.run(store.get_account(server.db, plan_manager_id)) is None


def test_wrong_values_are_named(owner: Browser) -> None:
    wrong = {
        "registration_number": "40-5",
        "abn": "89000000018",
        "prices_include_gst": "perhaps",
        "result_tolerance": "0.001",
        "days_until_claim_is_late": "0",
        "bank_letters": "B1",
        "bank_bsb": "99",
        "bank_account_number": "1234567890",
        "bank_account_name": "李",
        "direct_entry_user_id": "1234567",
        "group_payments_by": "day",
        "max_payments_in_file": "1e3",
    }
    response = owner.submit(PAGE, FORM | wrong)
    assert response.status_code == 422
    for name in wrong:
        assert f'id="{name}-error"' in response.text, name
    missing = owner.submit(PAGE, FORM | {"bank_account_number": ""})
    assert 'id="bank_account_number-error"' in missing.text


def run(server: RunningServer, plan_manager_id: UUID, *options: str) -> tuple[int, list[str], str]:
    settings = {"PLANKEEPER_DATABASE_URL": server.dsn, "PLANKEEPER_SECRET_KEY_FILE": str(shared_key_file())}
    done = run_plankeeper("plan-managers", "update", str(plan_manager_id), *options, **settings)
    return done.returncode, done.stdout.splitlines(), done.stderr


def test_a_command_changes_the_given_ones(server: RunningServer, plan_manager_id: UUID) -> None:
    place = (server, plan_manager_id)
    account = ("--bsb", "999-002", "--account-number", "87654321", "--account-name", "Sämple Plans")
    more = ("--registration-number", "4050000000", "--abn", "89000000019", "--bank-letters", "BQL")
    assert run(*place, *account, *more, "--direct-entry-user-id", "301", "--second-person") == (
        0,
        ["Changed.", "The bank's file has 'Sample Plans' for --account-name."],
        "",
    )
    assert run(*place, "--bsb", "999-002")[1][0] == "Nothing was changed."
    saved = server.run(store.get(server.db, plan_manager_id))
    assert (saved.bank_account_ending, saved.abn, saved.needs_second_person) == ("321", "89000000019", True)
    assert run(*place, "--no-second-person", "--abn", "", "--prices-include-gst", "yes")[1][0] == "Changed."
    saved = server.run(store.get(server.db, plan_manager_id))
    assert (saved.abn, saved.needs_second_person, saved.prices_include_gst) == (None, False, True)
    assert saved.bank_letters == "BQL"
    code, _, stderr = run(*place, "--abn", "1", "--account-number", "x")
    assert code == 1
    assert stderr == (
        "Error: --abn must have 11 digits with a valid check digit; --account-number must have 1 to 9 digits, and not"
        " only zeros. Nothing was changed.\n"
    )
