"""The mails of a run: to whom, with what, and what becomes of them if the mail server is down or rejects them."""

from collections.abc import Iterator
from datetime import timedelta
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from plankeeper.core.context import SYSTEM, WriteContext
from plankeeper.resources.statement_runs import service
from plankeeper.resources.statement_runs.mails import fail_expired
from plankeeper.resources.statement_runs.print_file import mark_posted, stop_letters
from support.client import Client
from support.mail import MailServer
from support.outbox import Outbox
from support.server import RunningServer
from support.statement_runs import ADDRESS, StatementOffice, run_at_once

MAIL = {"email": "robin@example.com", "participant_receives_statements": True}


@pytest.fixture
def office(server: RunningServer, api: Client) -> StatementOffice:
    return StatementOffice(server, api)


@pytest.fixture
def outbox(server: RunningServer) -> Iterator[Outbox]:
    server.run(server.db.execute("delete from outgoing_mails"))  # what other tests have left would be sent, too
    with MailServer() as mail:
        yield Outbox(server, mail)


def recipients(outbox: Outbox) -> list[str]:
    return sorted(each.recipients[0] for each in outbox.mail.received)


def test_the_participant_and_the_team_get_the_statement(office: StatementOffice, outbox: Outbox) -> None:
    robin = office.participant(**MAIL)
    office.member(robin, "kim@example.com", "email_statements")
    office.member(robin, "lee@example.com", "view_budget")
    run = run_at_once(office, outbox.settings)
    outbox.catch_up()
    assert (run["state"], run["made"]) == ("ended", 1)
    assert outbox.send_due() == 2
    assert recipients(outbox) == ["kim@example.com", "robin@example.com"]
    [first, *_] = outbox.mail.received
    assert first.message["Subject"] == "Statement for March 2026 from Test plan manager"
    assert "- Core: $0.00 spent in March 2026, $12,000.00 of $12,000.00 left\n" in first.text
    [attached] = list(first.message.iter_attachments())
    content = attached.get_payload(decode=True)
    assert (attached.get_content_type(), attached.get_filename()) == ("application/pdf", "statement-2026-03.pdf")
    [statement] = office.client.get(f"/participants/{robin}/statements").json()["data"]
    pdf = office.client.http.get(
        f"{office.server.url}/api/public/v1/participants/{robin}/statements/{statement['id']}",
        headers=office.client.headers() | {"Accept": "application/pdf"},
    )
    assert content == pdf.content
    sent = [(each["way"], each["recipient"]) for each in statement["sent"]]
    assert sorted(sent) == [("mail", "kim@example.com"), ("mail", "robin@example.com")]
    [item] = office.items(run).values()
    assert (item["state"], {each["state"] for each in item["recipients"]}) == ("sent", {"sent"})
    assert office.read(run)["sent"] == 1


def test_opting_out_holds_until_the_mail_is_sent(office: StatementOffice, outbox: Outbox) -> None:
    robin = office.participant(**MAIL)
    died = office.participant(**(MAIL | {"email": "sam@example.com"}))
    kim = office.member(robin, "kim@example.com", "email_statements")
    run = run_at_once(office, outbox.settings)
    outbox.catch_up()
    office.client.put(f"/participants/{robin}", {"participant_receives_statements": False}).raise_for_status()
    office.client.put(f"/participants/{died}", {"deceased_on": "2026-03-05"}).raise_for_status()
    members = f"/participants/{robin}/team-members/{kim}"
    office.client.put(members, {"permissions": ["view_budget"]}).raise_for_status()
    outbox.send_due()
    assert outbox.mail.received == []
    items = office.items(run)
    assert {id_: (each["state"], each["reason"]) for id_, each in items.items()} == {
        robin: ("skipped", "opted_out"), died: ("skipped", "deceased")
    }  # fmt: skip
    assert {to["state"] for each in items.values() for to in each["recipients"]} == {"cancelled"}


def test_a_mail_server_that_is_down_for_a_day(office: StatementOffice, outbox: Outbox) -> None:
    robin = office.participant(**MAIL)
    run = run_at_once(office, outbox.settings)
    outbox.catch_up()
    outbox.mail.stop()
    for _ in range(24):
        outbox.send_due()
        outbox.wait(timedelta(hours=1))
    assert office.items(run)[robin]["state"] == "made"
    outbox.mail.start()
    outbox.send_due()
    assert office.items(run)[robin]["state"] == "sent"
    assert recipients(outbox) == ["robin@example.com"]


def test_a_rejected_mail_is_listed_and_sent_again(office: StatementOffice, outbox: Outbox) -> None:
    robin = office.participant(**MAIL)
    office.member(robin, "kim@example.com", "email_statements")
    run = run_at_once(office, outbox.settings)
    outbox.catch_up()
    outbox.mail.replies["robin@example.com"] = "550 No such mailbox"
    outbox.send_due()
    item = office.items(run)[robin]
    assert (item["state"], item["reason"]) == ("failed", "mail_failed")
    assert item["message"] == "The mail couldn't be sent: the recipient was rejected (550)."
    assert sorted(each["state"] for each in item["recipients"]) == ["failed", "sent"]
    office.client.put(f"/participants/{robin}", {"email": "robin@example.org"}).raise_for_status()
    run_again(office, outbox, run["id"])
    outbox.catch_up()
    outbox.send_due()
    assert recipients(outbox) == ["kim@example.com", "robin@example.org"]
    assert office.items(run)[robin]["state"] == "sent"


def run_again(office: StatementOffice, outbox: Outbox, run_id: str) -> None:
    """Retry with the settings of a server that sends mails."""

    async def work() -> None:
        async with office.server.db.transaction() as tx:
            ctx = WriteContext(tx, office.plan_manager_id, outbox.settings, SYSTEM)
            await service.retry(ctx, UUID(run_id), None)

    office.server.run(work())


def test_a_letter_that_failed_is_printed_after_the_mail_was_sent(office: StatementOffice, outbox: Outbox) -> None:
    robin = office.participant(**MAIL, postal_statement=True)
    run = run_at_once(office, outbox.settings)
    outbox.catch_up()
    outbox.send_due()
    item = office.items(run)[robin]
    assert (item["state"], item["reason"]) == ("failed", "no_postal_address")
    run_again(office, outbox, run["id"])
    assert office.items(office.ended(run))[robin]["recipients"] == item["recipients"]  # it still has no address
    office.client.put(f"/participants/{robin}", ADDRESS).raise_for_status()
    [failed] = office.rows("select id from statement_run_recipients where plan_manager_id = $1 and state = 'failed'")
    run_again(office, outbox, run["id"])
    item = office.items(office.ended(run))[robin]
    assert (item["state"], item["reason"]) == ("to_print", None)
    assert sorted(each["state"] for each in item["recipients"]) == ["sent", "to_print"]
    # Who has downloaded the print file before marks the letters until then.
    assert post_letters(office, run["id"], failed) == 0
    assert post_letters(office, run["id"], uuid7()) == 1
    assert office.items(run)[robin]["state"] == "sent"
    outbox.send_due()
    assert recipients(outbox) == ["robin@example.com"]


def post_letters(office: StatementOffice, run_id: str, until: UUID) -> int:
    async def work() -> int:
        async with office.server.db.transaction() as tx:
            ctx = WriteContext(tx, office.plan_manager_id, office.server.settings, SYSTEM)
            return await mark_posted(ctx, UUID(run_id), until)

    return office.server.run(work())


def test_nothing_is_sent_to_a_person_who_has_died_since(office: StatementOffice, outbox: Outbox) -> None:
    posted = office.participant(postal_statement=True, **ADDRESS)
    mailed = office.participant(**MAIL)
    both = office.participant(**MAIL | {"email": "kim@example.com"}, postal_statement=True, **ADDRESS)
    run = run_at_once(office, outbox.settings)
    for each in (posted, mailed, both):
        office.client.put(f"/participants/{each}", {"deceased_on": "2026-06-01"}).raise_for_status()
    assert post_letters(office, run["id"], uuid7()) == 0
    outbox.catch_up()
    outbox.send_due()
    office.server.run(stop_letters(office.server.db, outbox.settings, outbox.now))
    died = "The participant died before it was sent."
    items = office.items(run)
    assert {(each["state"], each["reason"], each["message"]) for each in items.values()} == {
        ("skipped", "deceased", died)
    }
    assert {(to["state"], to["message"]) for each in items.values() for to in each["recipients"]} == {
        ("cancelled", died)
    }
    assert recipients(outbox) == []
    office.client.put(f"/participants/{posted}", {"deceased_on": None}).raise_for_status()  # it was a mistake
    run_again(office, outbox, run["id"])
    items = office.items(office.ended(run))
    assert (items[posted]["state"], items[mailed]["reason"]) == ("to_print", "deceased")


def test_a_mail_that_was_given_up_is_listed(office: StatementOffice, outbox: Outbox) -> None:
    robin = office.participant(**MAIL, postal_statement=True, **ADDRESS)
    run = run_at_once(office, outbox.settings)
    outbox.catch_up()
    outbox.wait(timedelta(days=4))
    assert outbox.send_due() == 0
    office.server.run(fail_expired(office.server.db, outbox.settings, outbox.now))
    item = office.items(run)[robin]
    assert (item["state"], item["reason"], item["message"]) == (
        "failed", "mail_failed", "The mail server didn't take the mail within 3 days."
    )  # fmt: skip
    assert sorted(each["state"] for each in item["recipients"]) == ["failed", "to_print"]
