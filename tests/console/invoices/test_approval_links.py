"""The approval of an invoice by a mailed link, and the attacks that docs/approval.md lists."""

import io
import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from plankeeper.core.context import SYSTEM, WriteContext
from plankeeper.resources.invoices import approval_reminders
from plankeeper.resources.invoices.approval_reminders import ApprovalReminders
from plankeeper.resources.invoices.warnings import Level
from plankeeper.resources.office_settings import service as office_settings
from support.client import Client
from support.cluster import SharedCluster
from support.console import Account, Browser, create_account, main_text
from support.factories import upload_document
from support.mail import PUBLIC_URL, ReceivedMail, public_browser
from support.outbox import MailingServer, mailing_server
from support.quotas import hold_minute
from support.server import RunningServer, wait_until

LINE = {
    "description": "Gardening", "service_item_number": "01_019_0120_1_1", "quantity": 2, "unit_price": 60,
    "total_price": 120, "service_date_from": "2026-01-05", "service_date_to": "2026-01-05",
}  # fmt: skip
ORIGIN = {"Origin": PUBLIC_URL}
Invoice = dict[str, Any]


@pytest.fixture(scope="module")
def mailing(cluster: SharedCluster) -> Iterator[MailingServer]:
    with mailing_server(cluster, auth_failure_rate_limit=1000) as found:
        yield found


@pytest.fixture
def server(mailing: MailingServer) -> RunningServer:
    return mailing.server


@pytest.fixture
def api(new_client: Callable[..., Client]) -> Client:
    return new_client()


@pytest.fixture
def participant(api: Client) -> dict[str, Any]:
    return new_participant(api)


def new_participant(api: Client, **values: Any) -> dict[str, Any]:
    email = f"sam-{datetime.now(UTC).timestamp()}@example.com"
    fields = {"first_name": "Sam", "last_name": "Okafor", "email": email, "approval_required": True}
    return api.create("/participants", fields | values)


@pytest.fixture
def member(api: Client, participant: dict[str, Any]) -> dict[str, Any]:
    """A team member who may approve."""
    email = participant["email"].replace("sam", "kim")
    body = {
        "first_name": "Kim", "last_name": "Lee", "email": email,
        "permissions": ["view_invoices", "approve_invoices"],
    }  # fmt: skip
    return api.create(f"/participants/{participant['id']}/team-members", body)


@pytest.fixture
def invoice(api: Client, participant: dict[str, Any]) -> Invoice:
    return new_invoice(api, participant)


def new_invoice(api: Client, participant: dict[str, Any], **values: Any) -> Invoice:
    provider = api.create("/providers", {"entity_name": "Green Thumb", "abn": "51824753556"})
    body = {
        "invoice_number": "G-1", "invoice_date": "2026-01-06", "total": 120, "tax": 0, "subtotal": 120,
        "participant_id": participant["id"], "pm_provider_id": provider["id"], "line_items": [LINE],
    }  # fmt: skip
    return api.create("/invoices", body | values)


@pytest.fixture
def new_browser(mailing: MailingServer) -> Iterator[Callable[[], Browser]]:
    opened: list[Browser] = []

    def make() -> Browser:
        opened.append(public_browser(mailing.server.url))
        return opened[-1]

    yield make
    for each in opened:
        each.http.close()


@pytest.fixture
def visitor(new_browser: Callable[[], Browser]) -> Browser:
    return new_browser()


@pytest.fixture
def owner(mailing: MailingServer, api: Client, new_browser: Callable[[], Browser]) -> Browser:
    account: Account = mailing.server.run(create_account(mailing.server, UUID(api.plan_manager_id), "owner"))
    browser = new_browser()
    form = {"email": account.email, "password": "violet-harbour-93-lantern"}
    assert browser.submit("/console/sign-in", form, "/console/sign-in", headers=ORIGIN).status_code == 303
    return browser


def path_of(mail: ReceivedMail) -> str:
    [link] = mail.links
    return link.removeprefix(PUBLIC_URL)


def decide(browser: Browser, path: str, action: str, **form: str) -> Any:
    return browser.submit(f"{path}/{action}", form, path, headers=ORIGIN)


def status_of(api: Client, invoice: Invoice) -> str:
    return api.get(f"/invoices/{invoice['id']}").json()["approval_status"]


def link(mailing: MailingServer, person: dict[str, Any], count: int = 1) -> str:
    return path_of(mailing.mail.wait_for(person["email"], count))


def test_a_participant_approves_an_invoice_with_a_mailed_link(
    mailing: MailingServer, api: Client, participant: dict[str, Any], invoice: Invoice, visitor: Browser
) -> None:
    assert invoice["approval_status"] == "pending"
    mail = mailing.mail.wait_for(participant["email"])
    assert mail.message["Subject"] == "Please check an invoice of Green Thumb for $120.00"
    for each in ("Sam Okafor", "Gardening, 5 Jan 2026: $120.00", "Opening the link decides nothing.", "works once"):
        assert each in mail.text
    html = mail.message.get_body(("html",))
    assert html
    content = html.get_content()
    assert not any(each in content for each in ("<img", "<script", "<link", "url("))
    path = path_of(mail)
    page = visitor.get(path)
    assert page.status_code == 200
    for each in ("Green Thumb bills $120.00", "Sam Okafor", "Gardening", "ABN 51 824 753 556"):
        assert each in main_text(page.text)
    assert page.headers["cache-control"] == "no-store"
    assert page.headers["referrer-policy"] == "same-origin"
    assert '<meta name="robots" content="noindex, nofollow">' in page.text
    approved = decide(visitor, path, "approve")
    assert (approved.status_code, approved.headers["location"]) == (303, path)
    assert "You approved this on" in main_text(visitor.get(path).text)
    after = api.get(f"/invoices/{invoice['id']}").json()
    assert (after["approval_status"], after["approval_decided_by"]) == ("approved", "participant")
    assert after["approval_decided_at"] is not None


def test_a_rejection_needs_a_reason_which_the_office_reads(
    mailing: MailingServer, api: Client, participant: dict[str, Any], invoice: Invoice, visitor: Browser, owner: Browser
) -> None:
    path = link(mailing, participant)
    missing = decide(visitor, path, "reject")
    assert (missing.status_code, status_of(api, invoice)) == (422, "pending")
    assert "must have 1 to 10000 characters" in main_text(missing.text)
    assert decide(visitor, path, "reject", reason="It rained, nobody came").status_code == 303
    after = api.get(f"/invoices/{invoice['id']}").json()
    assert (after["approval_status"], after["approval_reason"]) == ("rejected", "It rained, nobody came")
    page = main_text(owner.get(f"/console/invoices/{invoice['id']}").text)
    assert "Sam Okafor (participant): It rained, nobody came" in page
    assert "Used to decide" in page


def test_a_change_of_an_amount_revokes_links_and_asks_again(
    mailing: MailingServer, api: Client, participant: dict[str, Any], invoice: Invoice, visitor: Browser
) -> None:
    old = link(mailing, participant)
    changed = api.put(f"/invoices/{invoice['id']}", {"total": 130, "subtotal": 130})
    assert changed.json()["approval_status"] == "pending"
    page = visitor.get(old)
    assert (page.status_code, "The invoice was changed" in page.text) == (409, True)
    new = link(mailing, participant, 2)
    assert decide(visitor, new, "approve").status_code == 303
    # The same after the approval.
    again = api.put(f"/invoices/{invoice['id']}", {"total": 140, "subtotal": 140}).json()
    assert (again["approval_status"], again["approval_decided_at"]) == ("pending", None)
    assert decide(visitor, link(mailing, participant, 3), "approve").status_code == 303
    # What isn't about the bill doesn't.
    assert api.put(f"/invoices/{invoice['id']}", {"due_date": "2026-02-01"}).json()["approval_status"] == "approved"


def test_the_second_person_is_told_who_has_decided(
    mailing: MailingServer,
    api: Client,
    participant: dict[str, Any],
    member: dict[str, Any],
    visitor: Browser,
    new_browser: Callable[[], Browser],
) -> None:
    invoice = new_invoice(api, participant)
    own, other = link(mailing, participant), link(mailing, member)
    assert decide(visitor, other, "approve").status_code == 303
    assert api.get(f"/invoices/{invoice['id']}").json()["approval_team_member_id"] == member["id"]
    page = new_browser().get(own)
    assert (page.status_code, "Kim Lee approved this on" in main_text(page.text)) == (200, True)
    # Somebody to whom the used mail was forwarded learns the same, and decides nothing.
    late = new_browser()
    rejected = late.submit(f"{other}/reject", {"reason": "No"}, "/console/sign-in", headers=ORIGIN)
    assert (rejected.status_code, status_of(api, invoice)) == (200, "approved")


def test_an_invoice_on_hold_is_asked_about_once_it_is_released(
    mailing: MailingServer, api: Client, participant: dict[str, Any], invoice: Invoice
) -> None:
    link(mailing, participant)
    held = new_invoice(api, new_participant(api, approval_required=False), invoice_number="G-2")
    assert held["approval_status"] == "not_required"
    person = api.get(f"/participants/{held['participant_id']}").json()
    api.post(f"/invoices/{held['id']}/hold", {"reason": "Wait"})
    assert api.post(f"/invoices/{held['id']}/request-approval").json()["approval_status"] == "pending"
    assert mailing.mail.to(person["email"]) == []
    api.post(f"/invoices/{held['id']}/release")
    assert link(mailing, person)


def test_staff_send_again_revoke_and_record_a_decision(
    mailing: MailingServer,
    api: Client,
    participant: dict[str, Any],
    member: dict[str, Any],
    visitor: Browser,
    owner: Browser,
) -> None:
    invoice = new_invoice(api, participant)
    first, page = link(mailing, participant), f"/console/invoices/{invoice['id']}"
    link(mailing, member)
    sent = owner.submit(f"{page}/approval/send", {}, page, headers=ORIGIN)
    assert sent.status_code == 303
    second = link(mailing, participant, 2)
    assert (visitor.get(first).status_code, visitor.get(second).status_code) == (404, 200)
    text = main_text(owner.get(page).text)
    assert ("Replaced by a new link" in text, "Works until" in text, "Send again" in text) == (True, True, True)
    assert owner.submit(f"{page}/approval/revoke", {}, page, headers=ORIGIN).status_code == 303
    assert visitor.get(second).status_code == 404
    form = {"decision": "approve", "decided_by": member["id"], "reason": "By phone"}
    wrong = owner.submit(f"{page}/approval/record", form | {"reason": ""}, page, headers=ORIGIN)
    assert wrong.status_code == 422
    assert owner.submit(f"{page}/approval/record", form, page, headers=ORIGIN).status_code == 303
    after = api.get(f"/invoices/{invoice['id']}").json()
    assert (after["approval_decided_by"], after["approval_reason"]) == ("team_member", "By phone")
    assert "Kim Lee: By phone" in main_text(owner.get(page).text)


def test_further_mails_about_an_invoice_are_delayed(
    mailing: MailingServer, api: Client, participant: dict[str, Any], invoice: Invoice, owner: Browser
) -> None:
    page = f"/console/invoices/{invoice['id']}"

    def send() -> str:
        assert owner.submit(f"{page}/approval/send", {}, page, headers=ORIGIN).status_code == 303
        return main_text(owner.get(page).text)

    link(mailing, participant)
    assert "A new link is being mailed." in send()
    link(mailing, participant, 2)
    api.put(f"/invoices/{invoice['id']}", {"total": 130, "subtotal": 130})
    link(mailing, participant, 3)
    for when in ("in 1 minute", "in 2 minutes", "in 4 minutes", "in 8 minutes", "in 15 minutes", "in 15 minutes"):
        assert f"A new link is mailed {when}, because there were several mails about this invoice today." in send()
    api.put(f"/invoices/{invoice['id']}", {"total": 140, "subtotal": 140})
    statement = """
        select extract(epoch from next_attempt_at - now()) / 60 from outgoing_mails
        where content ->> 'invoice_id' = $1
    """
    [minutes] = mailing.server.run(mailing.server.db.rows(float, statement, invoice["id"]))
    assert 14 < minutes <= 15
    assert len(mailing.mail.to(participant["email"])) == 3


def test_sending_and_revoking_links_are_events_of_the_invoice(
    mailing: MailingServer, api: Client, participant: dict[str, Any], invoice: Invoice, owner: Browser
) -> None:
    page = f"/console/invoices/{invoice['id']}"
    link(mailing, participant)
    # Without links that work, there is nothing to revoke, and no event.
    for action in ("send", "revoke", "revoke"):
        assert owner.submit(f"{page}/approval/{action}", {}, page, headers=ORIGIN).status_code == 303
    types = "invoice.approval_requested,invoice.approval_links_revoked"

    def recorded() -> list[dict[str, Any]]:
        return api.get("/events", resource_id=invoice["id"], type=types).json()["data"]

    wait_until(lambda: len(recorded()) >= 2)
    assert [each["type"] for each in recorded()] == types.split(",")
    revoked = recorded()[-1]
    assert (revoked["actor"]["kind"], revoked["previous"]) == ("user", None)
    assert (revoked["data"]["id"], revoked["data"]["approval_status"]) == (invoice["id"], "pending")
    assert "approval links revoked" in main_text(owner.get(page).text)


def test_the_api_records_decisions_of_people_who_may_approve(
    api: Client, participant: dict[str, Any], member: dict[str, Any], invoice: Invoice
) -> None:
    path = f"/invoices/{invoice['id']}"
    other = api.create(f"/participants/{participant['id']}/team-members", {"first_name": "Jo"})
    refused = api.post(f"{path}/approve", {"team_member_id": other["id"]})
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (400, "team_member_id")
    assert api.post(f"{path}/reject", {"team_member_id": member["id"]}).status_code == 400
    rejected = api.post(f"{path}/reject", {"team_member_id": member["id"], "reason": "Twice"}).json()
    assert (rejected["approval_status"], rejected["approval_team_member_id"]) == ("rejected", member["id"])
    assert api.post(f"{path}/approve", {}).status_code == 409
    assert api.post(f"{path}/request-approval").json()["approval_decided_by"] is None
    assert api.post(f"{path}/approve", {"reason": "Letter"}).json()["approval_decided_by"] == "participant"


def test_guessed_and_foreign_links_get_the_same_page_and_are_limited(
    mailing: MailingServer,
    cluster: SharedCluster,
    new_client: Callable[..., Client],
    participant: dict[str, Any],
    invoice: Invoice,
    visitor: Browser,
) -> None:
    path, other = link(mailing, participant), new_client()
    foreign = f"/console/approvals/{UUID(other.plan_manager_id).hex}{path.rpartition('/')[2][32:]}"
    guesses = [path[:-1] + "_", path + "x", foreign, "/console/approvals/x", f"/console/approvals/{'0' * 75}"]
    pages = [visitor.get(each) for each in guesses]
    assert {each.status_code for each in pages} == {404}
    assert len({main_text(each.text) for each in pages}) == 1
    assert decide_unseen(visitor, foreign).status_code == 404
    assert visitor.get(f"{foreign}/pages/1").status_code == 404
    limited = RunningServer(cluster.dsn, auth_failure_rate_limit=3, public_url=PUBLIC_URL).start()
    try:
        limited.run(hold_minute(limited.db, "link:127.0.0.1"))
        browser = public_browser(limited.url)
        statuses = [browser.get(f"/console/approvals/{number:075}").status_code for number in range(5)]
        browser.http.close()
        assert statuses == [404, 404, 404, 429, 429]
    finally:
        limited.stop()


def decide_unseen(browser: Browser, path: str, **more: Any) -> Any:
    """Approve with a form whose page wasn't opened."""
    return browser.submit(f"{path}/approve", {}, "/console/sign-in", **({"headers": ORIGIN} | more))


def test_a_link_decides_once(
    mailing: MailingServer, api: Client, participant: dict[str, Any], invoice: Invoice, visitor: Browser
) -> None:
    path = link(mailing, participant)
    assert decide(visitor, path, "approve").status_code == 303
    replayed = decide_unseen(visitor, path)
    assert (replayed.status_code, "You approved this" in main_text(replayed.text)) == (200, True)
    api.put(f"/invoices/{invoice['id']}", {"total": 500, "subtotal": 500})
    assert decide_unseen(visitor, path).status_code == 404
    assert status_of(api, invoice) == "pending"


def test_a_link_to_an_earlier_version_decides_nothing(
    mailing: MailingServer, api: Client, participant: dict[str, Any], invoice: Invoice, visitor: Browser
) -> None:
    path = link(mailing, participant)
    visitor.get(path)
    api.put(f"/invoices/{invoice['id']}", {"line_items": [LINE | {"description": "Gardening and a car"}]})
    answered = decide_unseen(visitor, path)
    assert (answered.status_code, status_of(api, invoice)) == (409, "pending")
    # Also if the change came around the service, such as by an import.
    new = link(mailing, participant, 2)
    mailing.server.execute_as_owner("update invoices set total = 999 where id = $1", UUID(invoice["id"]))
    assert decide_unseen(visitor, new).status_code == 409
    assert status_of(api, invoice) == "pending"
    assert link(mailing, participant, 3)


def test_of_racing_decisions_one_succeeds(
    mailing: MailingServer,
    api: Client,
    participant: dict[str, Any],
    member: dict[str, Any],
    new_browser: Callable[[], Browser],
) -> None:
    for number in range(4):
        invoice = new_invoice(api, participant, invoice_number=f"R-{number}")
        paths = [link(mailing, participant, number + 1), link(mailing, member, number + 1)]
        browsers = [new_browser() for _ in range(6)]
        for index, each in enumerate(browsers):
            each.csrf(paths[index % 2])

        def act(index: int, browsers: list[Browser] = browsers, paths: list[str] = paths) -> int:
            action = "approve" if index % 3 else "reject"
            form = {"reason": "No"} if action == "reject" else {}
            path = f"{paths[index % 2]}/{action}"
            return browsers[index].submit(path, form, "/console/sign-in", headers=ORIGIN).status_code

        with ThreadPoolExecutor(6) as pool:
            statuses = list(pool.map(act, range(6)))
        assert statuses.count(303) == 1, statuses
        assert set(statuses) <= {200, 303, 404}
        events = mailing.server.run(
            mailing.server.db.one(
                int,
                """
                select count(*) from events
                where resource_id = $1 and type in ('invoice.approved', 'invoice.rejected')
                """,
                invoice["id"],
            )
        )
        assert events == 1


def test_scanners_that_open_everything_decide_nothing(
    mailing: MailingServer, api: Client, participant: dict[str, Any], invoice: Invoice, visitor: Browser
) -> None:
    upload_document(api, invoice["id"])
    path = link(mailing, participant)
    page = visitor.get(path).text
    images = [f"{path}/pages/1"]
    assert f'src="{images[0]}"' in page
    for each in (path, f"{path}/approve", f"{path}/reject", *images):
        visitor.http.request("HEAD", each)
        visitor.get(each)
    assert visitor.get(images[0]).headers["content-type"].startswith("image/")
    assert status_of(api, invoice) == "pending"
    assert visitor.get(path).status_code == 200


def test_forms_of_other_sites_are_rejected(
    mailing: MailingServer, api: Client, participant: dict[str, Any], invoice: Invoice, visitor: Browser
) -> None:
    path = link(mailing, participant)
    foreign = decide_unseen(visitor, path, headers={"Origin": "https://evil.example"})
    without = visitor.http.post(f"{path}/approve", data={"csrf": "x"}, headers=ORIGIN)
    opaque = decide_unseen(visitor, path, headers={"Origin": "null"})
    assert {each.status_code for each in (foreign, without, opaque)} == {403}
    assert status_of(api, invoice) == "pending"


def test_a_token_is_in_no_log_and_not_in_the_database(
    cluster: SharedCluster, new_client: Callable[..., Client], mailing: MailingServer, visitor: Browser
) -> None:
    api = new_client()
    participant = new_participant(api)
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    logging.getLogger().addHandler(handler)
    try:
        new_invoice(api, participant)
        path = link(mailing, participant)
        visitor.get(path)
        decide(visitor, path, "approve")
    finally:
        logging.getLogger().removeHandler(handler)
    secret = path.rpartition("/")[2][32:]
    assert secret not in stream.getvalue()
    for table in ("approval_links", "outgoing_mails", "events", "access_records", "api_request_batches"):
        rows = mailing.server.run(mailing.server.db.rows(str, f"select {table}::text from {table}"))
        assert not any(secret in each for each in rows), table


def test_links_end_with_the_death_of_the_participant(
    mailing: MailingServer,
    api: Client,
    participant: dict[str, Any],
    member: dict[str, Any],
    visitor: Browser,
    owner: Browser,
) -> None:
    invoice = new_invoice(api, participant)
    paths = [link(mailing, participant), link(mailing, member)]
    assert api.put(f"/participants/{participant['id']}", {"deceased_on": "2026-01-20"}).status_code == 200
    assert [visitor.get(each).status_code for each in paths] == [404, 404]
    page = f"/console/invoices/{invoice['id']}"
    wait_until(lambda: "nobody may approve any more" in owner.get(page).text)
    assert "Nobody is asked" in main_text(owner.get(page).text)


def test_a_link_ends_with_the_permission_of_its_person(
    mailing: MailingServer, api: Client, participant: dict[str, Any], member: dict[str, Any], visitor: Browser
) -> None:
    new_invoice(api, participant)
    path = link(mailing, member)
    team = f"/participants/{participant['id']}/team-members/{member['id']}"
    assert api.put(team, {"permissions": ["view_invoices"]}).status_code == 200
    assert visitor.get(path).status_code == 404


def test_a_link_ends_when_the_email_of_its_person_is_corrected(
    mailing: MailingServer, api: Client, participant: dict[str, Any], invoice: Invoice, visitor: Browser, owner: Browser
) -> None:
    wrong, page = link(mailing, participant), f"/console/invoices/{invoice['id']}"
    assert visitor.get(wrong).status_code == 200
    corrected = participant | {"email": participant["email"].replace("sam", "samuel")}
    assert api.put(f"/participants/{participant['id']}", {"email": corrected["email"]}).status_code == 200
    assert (visitor.get(wrong).status_code, decide_unseen(visitor, wrong).status_code) == (404, 404)
    shown = main_text(owner.get(page).text)
    assert ("No longer works: the email was changed" in shown, corrected["email"] in shown) == (True, False)
    assert owner.submit(f"{page}/approval/send", {}, page, headers=ORIGIN).status_code == 303
    assert decide(visitor, link(mailing, corrected), "approve").status_code == 303


async def configure(server: RunningServer, api: Client, reminder: int | None, automatic: int | None) -> None:
    async with server.db.transaction() as tx:
        ctx = WriteContext(tx, UUID(api.plan_manager_id), server.settings, SYSTEM)
        await office_settings.set_values(
            ctx, {"approval_reminder_days": reminder, "approval_automatic_days": automatic}
        )


def test_reminders_and_approval_without_an_answer(
    mailing: MailingServer, api: Client, participant: dict[str, Any], invoice: Invoice, visitor: Browser
) -> None:
    server = mailing.server
    first = link(mailing, participant)

    def run_after(days: int) -> None:
        at = datetime.now(UTC) + timedelta(days=days, hours=1)
        server.run(ApprovalReminders(server.settings, clock=lambda: at, interval=0)(server.db))

    server.run(configure(server, api, 2, 5))
    for days in (1, 2, 3):
        run_after(days)
    reminder = mailing.mail.wait_for(participant["email"], 2)
    assert reminder.message["Subject"].startswith("Reminder: please check")
    assert (visitor.get(first).status_code, visitor.get(path_of(reminder)).status_code) == (404, 200)
    assert len(mailing.mail.to(participant["email"])) == 2
    run_after(5)
    after = api.get(f"/invoices/{invoice['id']}").json()
    assert (after["approval_status"], after["approval_decided_by"]) == ("approved", "automatic")
    assert after["approval_reason"].startswith("No answer within 5 days of the request on")
    assert "approved automatically" in main_text(visitor.get(path_of(reminder)).text)
    server.run(configure(server, api, None, None))


def test_requests_that_are_not_ready_keep_no_later_ones(
    mailing: MailingServer, api: Client, participant: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(approval_reminders, "BATCH_SIZE", 2)
    server, now = mailing.server, datetime.now(UTC)
    clock = [now]
    reminders = ApprovalReminders(server.settings, clock=lambda: clock[0], interval=0)

    def run_after(days: int) -> None:
        clock[0] = now + timedelta(days=days, hours=1)
        for _ in range(4):
            server.run(reminders(server.db))

    async def block_wrong_gst() -> None:
        async with server.db.transaction() as tx:
            ctx = WriteContext(tx, UUID(api.plan_manager_id), server.settings, SYSTEM)
            levels: dict[str, Level] = {"check_gst": "block"}
            await office_settings.set_warnings(ctx, levels, duplicates_need_participant=False)

    def new(day: int) -> Invoice:
        line = LINE | {"service_date_from": f"2026-01-{day:02}", "service_date_to": f"2026-01-{day:02}"}
        wrong_gst = {"tax": 5, "total": 125} if 4 <= day <= 6 else {}
        return new_invoice(api, participant, invoice_number=f"G-{day}", line_items=[line], **wrong_gst)

    invoices = [new(day) for day in range(1, 9)]
    link(mailing, participant, 8)
    for each, action in zip(invoices, ("cancel", "hold", "wont-claim"), strict=False):
        api.post(f"/invoices/{each['id']}/{action}", {"reason": "Wait"}).raise_for_status()
    server.run(block_wrong_gst())
    server.run(configure(server, api, 2, 5))
    run_after(2)
    mailing.mail.wait_for(participant["email"], 10)
    run_after(5)
    assert [status_of(api, each) for each in invoices] == [*["pending"] * 6, "approved", "approved"]
    api.post(f"/invoices/{invoices[1]['id']}/release").raise_for_status()
    run_after(5)  # begins again with the earliest
    assert [status_of(api, each) for each in invoices[:3]] == ["pending", "approved", "pending"]
    assert len(mailing.mail.to(participant["email"])) == 10
    server.run(configure(server, api, None, None))


def test_owners_change_the_settings(owner: Browser) -> None:
    path = "/console/settings/approval"
    wrong = owner.submit(path, {"approval_reminder_days": "0", "approval_automatic_days": "x"}, path, headers=ORIGIN)
    assert (wrong.status_code, main_text(wrong.text).count("must be a number from 1 to 90")) == (422, 4)
    form = {"approval_reminder_days": "3", "approval_automatic_days": ""}
    assert owner.submit(path, form, path, headers=ORIGIN).status_code == 303
    page = owner.get(path).text
    assert 'name="approval_reminder_days" type="text" value="3"' in page
