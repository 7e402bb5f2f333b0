"""Bank details: stored encrypted, proposed by API, with their history and their events."""

from typing import Any
from uuid import UUID

import httpx
import pytest
from uuid_utils.compat import uuid7

from plankeeper.core.context import SYSTEM, WriteContext
from plankeeper.core.encryption import rotation
from plankeeper.core.encryption.cipher import SecretCipher, SecretKey, create_key_file, read_keys, replace_keys
from plankeeper.resources.bank_details import payable, service, store
from plankeeper.resources.bank_details.accounts import Payee
from support.bank_details import ACCOUNT, CALLED_BACK, OTHER_ACCOUNT, Office

SUMMARY = {"bsb": "062000", "account_ending": "678", "account_name": "Amber Physio", "estate_payee": None}


def accounts(response: httpx.Response) -> tuple[Any, Any]:
    return response.json()["current"], response.json()["proposed"]


def test_details_are_proposed_and_shown_without_the_number(office: Office) -> None:
    assert office.client.get(office.path).json() == {"current": None, "proposed": None, "updated_at": None}
    response = office.client.put(office.path, ACCOUNT)
    assert accounts(response) == (None, SUMMARY)
    got = office.client.get(office.path)
    assert (got.json(), got.headers["etag"]) == (response.json(), response.headers["etag"])
    assert office.approve(office.actor(), office.proposal_id()) == "approved"
    assert accounts(office.client.get(office.path)) == (SUMMARY, None)


def test_participants_have_details_too(office: Office) -> None:
    participant_id = office.client.create("/participants", {"first_name": "Ada"})["id"]
    path = f"/participants/{participant_id}/bank-details"
    assert accounts(office.client.put(path, ACCOUNT)) == (None, SUMMARY)
    assert accounts(office.client.put(path, ACCOUNT)) == (None, SUMMARY)
    assert accounts(office.client.get(path)) == (None, SUMMARY)
    assert office.client.get(f"/participants/{uuid7()}/bank-details").status_code == 404
    assert office.client.put(f"/participants/{office.provider_id}/bank-details", ACCOUNT).status_code == 404


def test_an_old_version_is_not_replaced(office: Office) -> None:
    tag = office.client.get(office.path).headers["etag"]
    assert office.client.put(office.path, ACCOUNT, headers={"If-Match": tag}).status_code == 200
    assert office.client.put(office.path, OTHER_ACCOUNT, headers={"If-Match": tag}).status_code == 412


def test_an_account_with_the_same_ending_is_another_version(office: Office) -> None:
    tag = office.client.put(office.path, ACCOUNT).headers["etag"]
    same_ending = ACCOUNT | {"account_number": "99999678"}
    replaced = office.client.put(office.path, same_ending, headers={"If-Match": tag})
    assert (replaced.status_code, accounts(replaced)) == (200, (None, SUMMARY))
    assert replaced.headers["etag"] != tag
    assert office.client.put(office.path, OTHER_ACCOUNT, headers={"If-Match": tag}).status_code == 412


@pytest.mark.parametrize(
    "change, error",
    [
        ({"bsb": "06200"}, ("bsb", "invalid_format", "must have six digits, such as 062-000")),
        ({"account_number": "1234567890"}, ("account_number", "too_long", "must have at most 9 digits")),
        (
            {"account_number": "12A"},
            ("account_number", "invalid_format", "must have 1 to 9 digits, and not only zeros"),
        ),
        ({"account_name": " "}, ("account_name", "too_short", "must not be blank")),
        (
            {"account_name": "ß" * 17},
            ("account_name", "too_long", "must have at most 32 characters, and has 34"),
        ),
        (
            {"account_name": "李 Clinic"},
            ("account_name", "invalid_format", "has characters that banks don't accept: 李"),
        ),
    ],
)
def test_what_a_bank_cannot_carry_is_an_error(
    office: Office, change: dict[str, str], error: tuple[str, str, str]
) -> None:
    [found] = office.client.put(office.path, ACCOUNT | change).json()["errors"]
    assert (found["field"], found["code"], found["message"]) == error
    assert office.endings() == (None, None)


def test_a_name_is_stored_as_the_bank_carries_it(office: Office) -> None:
    proposed = office.client.put(office.path, ACCOUNT | {"account_name": " Łukasz’s  Café "}).json()["proposed"]
    assert proposed["account_name"] == "Lukasz's Cafe"


def test_the_events_have_only_endings(office: Office) -> None:
    person, other = office.actor(), office.actor("Sam Ito")
    office.approve(other, office.propose(person))
    office.approve(other, proposal := office.propose(person, OTHER_ACCOUNT))
    office.reject(other, office.propose(person, ACCOUNT))
    statement = """
        select json_build_object('type', type, 'data', data, 'previous', previous)::text from events
        where plan_manager_id = $1 and resource_kind = 'bank_details' order by id
    """
    texts = office.server.run(office.server.db.rows(str, statement, office.plan_manager_id))
    verbs = ["proposed", "approved", "proposed", "approved", "proposed", "rejected"]
    assert [text.split('"')[3] for text in texts] == [f"bank_details.{each}" for each in verbs]
    assert str(proposal) in texts[3]
    for text in texts:
        assert "12345678" not in text
        assert "062" not in text.replace(str(proposal), "") or office.provider_id in text
        assert "Amber Physio" not in text


def test_the_history_names_people_and_call_backs(office: Office) -> None:
    person, other = office.actor(), office.actor("Sam Ito")
    office.approve(other, office.propose(person))
    office.propose(person, OTHER_ACCOUNT)
    office.reject(other, office.propose(person, ACCOUNT))
    found = office.server.run(store.list_changes(office.server.db, office.plan_manager_id, office.payee, 10))
    assert [(each.action, each.old_ending, each.new_ending, each.actor_name, each.note) for each in found] == [
        ("rejected", "678", "678", "Sam Ito", "Nobody there knows of it"),
        ("proposed", "678", "678", "Robin Hale", None),
        ("closed", "678", "321", "Robin Hale", "Replaced by another proposal"),
        ("proposed", "678", "321", "Robin Hale", None),
        ("approved", None, "678", "Sam Ito", CALLED_BACK),
        ("proposed", None, "678", "Robin Hale", None),
    ]


def reason(office: Office, *more: Payee, for_update: bool = False) -> list[Any]:
    async def work(ctx: WriteContext) -> Any:
        return await payable.find_payable(ctx.tx, office.plan_manager_id, [office.payee, *more], for_update=for_update)

    found = office.write(SYSTEM, work)
    return [found[each].reason or found[each].account_ending for each in (office.payee, *more)]


def test_only_approved_details_are_paid_to(office: Office) -> None:
    person, other, unknown = office.actor(), office.actor("Sam Ito"), Payee("participant", uuid7())
    assert reason(office, unknown) == ["no_bank_details", "no_bank_details"]
    proposal = office.propose(person)
    assert reason(office, for_update=True) == ["bank_details_waiting"]
    office.approve(other, proposal)
    assert reason(office, unknown, for_update=True) == ["678", "no_bank_details"]
    office.reject(other, office.propose(person, OTHER_ACCOUNT))
    assert reason(office) == ["678"]


def test_a_returned_payment_needs_another_approval(office: Office) -> None:
    person, other = office.actor(), office.actor("Sam Ito")
    office.approve(other, office.propose(person))
    office.write(other, lambda ctx: service.require_approval_again(ctx, office.payee))
    assert reason(office) == ["bank_details_need_approval"]
    assert office.approve(other, office.proposal_id()) == "invalid_transition"
    assert office.approve(person, office.proposal_id()) == "approved"
    assert reason(office) == ["678"]
    [last, *_] = office.server.run(store.list_changes(office.server.db, office.plan_manager_id, office.payee, 1))
    assert last.action == "confirmed"


def test_rejecting_details_after_a_return_does_not_release_them(office: Office) -> None:
    person, other = office.actor(), office.actor("Sam Ito")
    office.approve(other, office.propose(person))
    waiting = office.propose(person, OTHER_ACCOUNT)
    office.write(other, lambda ctx: service.require_approval_again(ctx, office.payee))
    assert office.proposal_id() == waiting
    office.reject(other, waiting)
    assert reason(office) == ["bank_details_need_approval"]
    assert office.approve(other, office.propose(person)) == "approved"
    assert reason(office) == ["678"]


def test_others_with_the_same_account_are_found_during_and_after_a_rotation(
    office: Office, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dataclasses import replace as replace_settings

    file = tmp_path / "secret.keys"
    old = create_key_file(file)
    monkeypatch.setattr(office.server, "settings", replace_settings(office.server.settings, secret_key_file=file))
    person, twin = office.actor(), Payee("provider", UUID(office.client.create("/providers", {})["id"]))
    office.propose(person)
    replace_keys(file, [new := SecretKey.generate(), old])
    office.propose(person, ACCOUNT | {"account_name": "Someone Else"}, twin)

    async def find() -> set[UUID]:
        row = await store.get(office.server.db, office.plan_manager_id, office.payee)
        assert row
        hashes = service.same_account_hashes(office.server.settings, office.plan_manager_id, row)
        found = await store.list_by_hashes(office.server.db, office.plan_manager_id, hashes)
        return {each.id for each in found}

    assert office.server.run(find()) == {office.payee.id, twin.id}

    async def rotate() -> None:
        # Only those of this test: other offices have another key.
        cipher = SecretCipher(file)
        for each in await rotation.list_with_other_keys(office.server.db, new.id):
            if str(office.plan_manager_id) in each.key:
                assert await rotation.encrypt(office.server.db, cipher, each)

    office.server.run(rotate())
    replace_keys(file, read_keys(file)[:1])
    assert office.server.run(find()) == {office.payee.id, twin.id}


def test_a_stored_account_cannot_be_moved_to_another_payee(office: Office) -> None:
    from plankeeper.core.encryption.cipher import SecretDecryptionError
    from plankeeper.resources.bank_details.accounts import decrypt_account

    office.propose(office.actor())
    row = office.server.run(store.get(office.server.db, office.plan_manager_id, office.payee))
    assert row
    assert row.proposed_account
    assert "12345678" not in row.proposed_account
    place = (office.server.settings, office.plan_manager_id)
    assert decrypt_account(*place, office.payee, row.proposed_account).number == "12345678"
    for other in (Payee("participant", office.payee.id), Payee("provider", uuid7())):
        with pytest.raises(SecretDecryptionError):
            decrypt_account(*place, other, row.proposed_account)
