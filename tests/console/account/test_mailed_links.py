"""With a mail server: forgotten passwords, invitations and new devices. Links never come from a request's headers."""

import re
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import httpx
import pytest
from uuid_utils.compat import uuid7

from plankeeper.access.accounts import member_store
from plankeeper.access.plan_managers import store as plan_managers
from support.console import PASSWORD, Account, Browser, create_account
from support.mail import PUBLIC_URL, ReceivedMail, public_browser
from support.outbox import MailingServer
from support.server import RunningServer, wait_until

NEW_PASSWORD = "eleven-amber-lighthouses"
FORGOT = "/console/forgot-password"
PEOPLE = "/console/settings/people"
# Headers that name another host. `Host` itself must be that of the public URL.
HOSTILE = {"X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "http", "Forwarded": "host=evil.example"}


@pytest.fixture
def plan_manager_id(mailing: MailingServer) -> UUID:
    async def create() -> UUID:
        async with mailing.server.db.transaction() as tx:
            plan_manager = await plan_managers.insert(tx, uuid7(), "Wattlebird Plans")
            assert plan_manager
            return plan_manager.id

    return mailing.server.run(create())


@pytest.fixture
def robin(mailing: MailingServer, plan_manager_id: UUID) -> Account:
    return mailing.server.run(create_account(mailing.server, plan_manager_id, "owner"))


@pytest.fixture
def new_browser(mailing: MailingServer) -> Iterator[Callable[[], Browser]]:
    opened: list[Browser] = []

    def make() -> Browser:
        opened.append(public_browser(mailing.server.url))
        return opened[-1]

    yield make
    for each in opened:
        each.http.close()


def submit(browser: Browser, path: str, form: dict[str, str], page: str | None = None) -> Any:
    return browser.submit(path, form, page or path, headers={"Origin": PUBLIC_URL, **HOSTILE})


def sign_in(browser: Browser, account: Account, password: str = PASSWORD) -> httpx.Response:
    return submit(browser, "/console/sign-in", {"email": account.email, "password": password})


def only_link(mail: ReceivedMail) -> str:
    """The path of the only link of a mail, which begins with the public URL."""
    [link] = mail.links
    assert link.startswith(f"{PUBLIC_URL}/console/")
    return link.removeprefix(PUBLIC_URL)


def queued(server: RunningServer) -> int:
    return server.run(server.db.one(int, "select count(*) from outgoing_mails"))


def wait_for_empty_queue(server: RunningServer) -> None:
    wait_until(lambda: queued(server) == 0)


def without_secrets(response: httpx.Response, *texts: str) -> tuple[int, str, list[tuple[str, str]]]:
    page = re.sub(r'name="csrf" value="[^"]+"|wait \d+ seconds', "", response.text)
    for text in texts:
        page = page.replace(text, "")
    varying = ("date", "x-request-id", "set-cookie", "content-length", "retry-after")
    headers = [(name, "" if name in varying else value) for name, value in response.headers.items()]
    return response.status_code, page, headers


def test_a_forgotten_password_is_replaced_with_a_mailed_link(
    mailing: MailingServer, robin: Account, new_browser: Callable[[], Browser]
) -> None:
    signed_in, browser = new_browser(), new_browser()
    assert sign_in(signed_in, robin).status_code == 303
    mailing.mail.wait_for(robin.email)  # the notice of the new device
    assert f'href="{FORGOT}"' in browser.get("/console/sign-in").text
    sent = submit(browser, FORGOT, {"email": f" {robin.email.upper()} "})
    assert (sent.status_code, "Look for an email" in sent.text) == (200, True)
    mail = mailing.mail.wait_for(robin.email, 2)
    assert mail.message["Subject"] == "Reset your Plankeeper password"
    path = only_link(mail)
    for _ in range(2):  # opening it, as mail filters do, doesn't use it
        assert browser.get(path).status_code == 200
    rejected = submit(browser, path, {"password": "short"})
    assert (rejected.status_code, "Password must" in rejected.text) == (422, True)
    assert signed_in.get(PEOPLE).status_code == 200
    changed = submit(browser, path, {"password": NEW_PASSWORD})
    assert (changed.status_code, "Password changed" in changed.text) == (200, True)
    assert "__Host-plankeeper" not in browser.http.cookies
    for each in (signed_in, browser):
        assert each.get(PEOPLE).headers["location"] == f"/console/sign-in?next={PEOPLE}"
    for response in (browser.get(path), submit(browser, path, {"password": PASSWORD}, FORGOT)):
        assert (response.status_code, "This link doesn’t work" in response.text) == (404, True)
    assert sign_in(browser, robin).status_code == 401
    assert sign_in(browser, robin, NEW_PASSWORD).status_code == 303


def test_the_response_for_an_email_without_an_account_is_the_same(
    mailing: MailingServer, robin: Account, new_browser: Callable[[], Browser]
) -> None:
    unknown, responses = f"{uuid7()}@example.com", []
    for email in (robin.email, unknown):
        browser = new_browser()
        responses.append([without_secrets(submit(browser, FORGOT, {"email": email}), email) for _ in range(3)])
    assert [each[0] for each in responses[0]] == [200, 200, 429]
    assert responses[0] == responses[1]
    mailing.mail.wait_for(robin.email)
    assert mailing.mail.to(unknown) == []


def test_a_form_from_another_site_requests_no_link(
    mailing: MailingServer, robin: Account, new_browser: Callable[[], Browser]
) -> None:
    wait_for_empty_queue(mailing.server)
    browser = new_browser()
    csrf = browser.csrf(FORGOT)
    for token, origin in ((csrf, "https://evil.example"), (csrf, "https://127.0.0.1"), ("x" * 43, PUBLIC_URL)):
        form = {"csrf": token, "email": robin.email}
        response = browser.http.post(FORGOT, data=form, headers={"Origin": origin})
        assert response.status_code == 403
    for host in ("evil.example", "127.0.0.1"):
        form = {"csrf": csrf, "email": robin.email}
        response = browser.http.post(FORGOT, data=form, headers={"Host": host, "Origin": f"https://{host}"})
        assert response.status_code == 421
    assert queued(mailing.server) == 0


@pytest.mark.parametrize("email", ["", " ", "robin", "\x7f"])
def test_something_else_than_an_email_is_rejected(new_browser: Callable[[], Browser], email: str) -> None:
    response = submit(new_browser(), FORGOT, {"email": email})
    assert (response.status_code, "Email must be an email address" in response.text) == (422, True)


def test_an_invitation_is_mailed_and_not_shown_to_the_inviter(
    mailing: MailingServer, robin: Account, plan_manager_id: UUID, new_browser: Callable[[], Browser]
) -> None:
    owner, guest = new_browser(), new_browser()
    sign_in(owner, robin)
    email = f"{uuid7()}@example.com"
    assert "sends the person a link" in owner.get(f"{PEOPLE}/invite").text
    form = {"email": email, "name": "Kim", "role": "manager"}
    created = submit(owner, PEOPLE, form, f"{PEOPLE}/invite")
    first = only_link(mailing.mail.wait_for(email))
    assert created.status_code == 200
    assert "/console/invitations/" not in created.text
    mail = mailing.mail.to(email)[0]
    assert mail.message["Subject"] == "Invitation to Wattlebird Plans"
    assert "Robin Hale invites you to join Wattlebird Plans on Plankeeper, with the role manager." in mail.text
    [invitation] = mailing.server.run(member_store.list_pending_invitations(mailing.server.db, plan_manager_id))
    again = f"{PEOPLE}/invitations/{invitation.id}/again"
    repeated = submit(owner, again, {}, PEOPLE)
    assert ("/console/invitations/" in repeated.text, "Send again" in owner.get(PEOPLE).text) == (False, True)
    second = only_link(mailing.mail.wait_for(email, 2))
    assert (guest.get(first).status_code, guest.get(second).status_code) == (404, 200)
    for path, fields, page in ((again, {}, PEOPLE), (PEOPLE, form, f"{PEOPLE}/invite")):
        too_soon = submit(owner, path, fields, page)
        assert too_soon.status_code == 422
        assert "Email was sent an invitation a moment ago: try again in 1 minute." in too_soon.text
    joined = submit(guest, second, {"name": "Kim", "password": PASSWORD})
    assert (joined.status_code, joined.headers["location"]) == (303, "/console")


def test_no_response_tells_the_inviter_whether_an_email_has_an_account(
    mailing: MailingServer, robin: Account, new_browser: Callable[[], Browser]
) -> None:
    async def create_elsewhere() -> Account:
        async with mailing.server.db.transaction() as tx:
            plan_manager = await plan_managers.insert(tx, uuid7(), "Saltbush Plans")
            assert plan_manager
        return await create_account(mailing.server, plan_manager.id, "viewer")

    known, unknown = mailing.server.run(create_elsewhere()).email, f"{uuid7()}@example.com"
    owner, responses, mails = new_browser(), [], []
    sign_in(owner, robin)
    for email in (known, unknown):
        form = {"email": email, "name": "", "role": "viewer"}
        responses.append(without_secrets(submit(owner, PEOPLE, form, f"{PEOPLE}/invite"), email))
        mail = mailing.mail.wait_for(email)
        mails.append(re.sub(r"until .* AE[DS]T", "", mail.text.replace(mail.links[0], "")))
    assert responses[0] == responses[1]
    assert mails[0] == mails[1]


def test_a_sign_in_on_an_unknown_device_is_mailed(
    mailing: MailingServer, robin: Account, new_browser: Callable[[], Browser]
) -> None:
    browser, other = new_browser(), new_browser()
    form = {"email": robin.email, "password": PASSWORD}
    headers = {"Origin": PUBLIC_URL, "User-Agent": "Firefox 1"}
    assert browser.submit("/console/sign-in", form, "/console/sign-in", headers=headers).status_code == 303
    mail = mailing.mail.wait_for(robin.email)
    assert mail.message["Subject"] == "New sign-in to your Plankeeper account"
    assert f"Your Plankeeper account {robin.email} was used to sign in on a new device" in mail.text
    assert "Network:  127.0.0.1\nBrowser:  Firefox 1\n" in mail.text
    assert only_link(mail) == "/console/account"
    wait_for_empty_queue(mailing.server)
    browser.http.cookies.delete("__Host-plankeeper")
    # Neither a known device nor a failed sign-in is mailed.
    assert sign_in(browser, robin).status_code == 303
    assert sign_in(other, robin, "wrong-wrong-wrong").status_code == 401
    assert (queued(mailing.server), len(mailing.mail.to(robin.email))) == (0, 1)
    assert sign_in(other, robin).status_code == 303
    mailing.mail.wait_for(robin.email, 2)


def test_while_the_mail_server_is_down_requests_succeed_and_mails_are_sent_later(
    mailing: MailingServer, robin: Account, new_browser: Callable[[], Browser]
) -> None:
    mailing.mail.stop()
    try:
        browser = new_browser()
        assert sign_in(browser, robin).status_code == 303
        assert submit(browser, FORGOT, {"email": robin.email}).status_code == 200
    finally:
        mailing.mail.start()
    later = "update outgoing_mails set next_attempt_at = now() where attempt_count > 0 returning true"

    def is_everything_sent() -> bool:
        mailing.server.run(mailing.server.db.rows(bool, later))
        return len(mailing.mail.to(robin.email)) == 2

    wait_until(is_everything_sent)
    subjects = sorted(str(each.message["Subject"]) for each in mailing.mail.to(robin.email))
    assert subjects == ["New sign-in to your Plankeeper account", "Reset your Plankeeper password"]
