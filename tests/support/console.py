"""People who sign in to the console, and a browser without a screen or a script."""

import re
from datetime import UTC, datetime
from functools import cache
from html import unescape
from typing import Any, NamedTuple
from uuid import UUID

import httpx
from argon2 import PasswordHasher
from uuid_utils.compat import uuid7

from plankeeper.access.accounts import member_store, members, passwords, schemas, sessions, store
from plankeeper.access.accounts.audit import ClientInfo
from plankeeper.access.accounts.schemas import RoleDetails
from plankeeper.access.policy import encode_password
from plankeeper.access.tokens import csrf_token
from plankeeper.console.shell.cookies import mask_token
from plankeeper.core.context import SYSTEM, WriteContext
from support.client import LIMITS, NO_TLS
from support.server import RunningServer, wait_until

PASSWORD = "violet-harbour-93-lantern"


class Account(NamedTuple):
    """A sign-in."""

    email: str
    account_id: UUID


class Browser:
    """Sends forms as a browser would: with the page's token, the cookies and the Origin."""

    session_cookie = "plankeeper"

    def __init__(self, url: str, transport: httpx.BaseTransport | None = None) -> None:
        self.url = url
        # To compress pages and decompress them takes a tenth of the time. Chromium asks for it, on every page.
        plain = {"Accept-Encoding": "identity"}
        self.http = httpx.Client(
            base_url=url, timeout=60, verify=NO_TLS, limits=LIMITS, transport=transport, headers=plain
        )
        self._tokens = dict[str, str]()  # by session

    def get(self, path: str, **more: Any) -> httpx.Response:
        return self.http.get(path, **more)

    def csrf(self, page: str | None = None) -> str:
        """The token of a page's forms, or of the session: all pages have the same, so that it is read once."""
        session = self.http.cookies.get(self.session_cookie, "")
        if page or session not in self._tokens:
            path = page or "/console/plan-managers"
            match = re.search(r'name="csrf" value="([^"]+)"', self.get(path).text)
            assert match, path
            self._tokens[session] = unescape(match[1])
        return self._tokens[session]

    def activity(self, query: str = "") -> str:
        """The summaries of the newest events, each from its page, once one is listed: the sequencer takes a moment."""
        link = re.compile(r'href="(/console/activity/[0-9a-f-]{36})[?"]')
        paths = wait_until(lambda: link.findall(self.get(f"/console/activity{query}").text))
        return "".join(self.get(path).text for path in dict.fromkeys(paths))

    def submit(self, path: str, form: dict[str, Any] | None = None, page: str | None = None, **more: Any) -> Any:
        """The form of `page`."""
        fields = {"csrf": self.csrf(page), **(form or {})}
        return self.http.post(path, data=fields, **({"headers": {"Origin": self.url}} | more))

    def start_session(self, server: RunningServer, account: Account) -> None:
        """Be signed in without the pages of signing in."""
        token, device_token = server.run(open_session(server, account))
        host = self.http.base_url.host
        for name, value in {self.session_cookie: token, f"{self.session_cookie}-device": device_token}.items():
            self.http.cookies.set(name, value, domain=host)
        self._tokens[token] = mask_token(csrf_token(token))

    def sign_in(self, account: Account, **more: str) -> httpx.Response:
        form = {"email": account.email, "password": PASSWORD, **more}
        return self.submit("/console/sign-in", form, "/console/sign-in")


def csrf_tokens(page: str) -> list[str]:
    """The tokens of a page's forms, each once."""
    return list(dict.fromkeys(unescape(each) for each in re.findall(r'name="csrf" value="([^"]*)"', page)))


def main_text(page: str) -> str:
    """The words of a page's main part, with single spaces."""
    main = page.replace("<wbr>", "").partition("<main")[2].partition(">")[2].partition("</main>")[0]
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", " ", main))).strip()


class LoadCounter:
    """Counts the pages that are shown from now on; redirects don't count."""

    def __init__(self, page: Any) -> None:
        self.count = 0
        page.on("domcontentloaded", self.increment)

    def increment(self, _page: Any) -> None:
        self.count += 1


def add_session(context: Any, server: RunningServer, account: Account) -> None:
    """Sign in without a form: a context of Chromium gets the cookie of a session. It is for tests of other pages."""
    token, _ = server.run(open_session(server, account))
    cookie = {"name": Browser.session_cookie, "value": token, "url": server.url}
    context.add_cookies([cookie | {"httpOnly": True, "sameSite": "Lax"}])


def open_signed_in(page: Any, server: RunningServer, account: Account, path: str = "/console") -> None:
    """Load a page in Chromium for an account that is signed in without a form."""
    add_session(page.context, server, account)
    page.goto(path, wait_until="load")


def fill_sign_in_form(page: Any, email: str, path: str = "/console") -> None:
    """Sign in with a page of Chromium, on the way to `path`."""
    page.goto(path)
    page.get_by_label("Email").fill(email)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()


def wait_until_signed_in(page: Any) -> None:
    """Wait for a page that only people who are signed in get."""
    page.locator(".account-menu").wait_for()


def open_account_menu(page: Any) -> None:
    """Show what the account menu holds: the account, the settings and "Sign out"."""
    if page.locator(".account-menu").get_attribute("open") is None:
        page.locator(".account-menu > summary").click()


def sign_out(page: Any) -> None:
    open_account_menu(page)
    page.get_by_role("button", name="Sign out", exact=True).click()


async def create_account(server: RunningServer, plan_manager_id: UUID, role: str, name: str = "Robin Hale") -> Account:
    """A sign-in with a role. Its password is hashed once, and isn't estimated, which takes most of the time."""
    email, password_hash = f"{uuid7()}@example.com", _hash_password(passwords._hasher)  # noqa: SLF001
    account = schemas.Account(
        id=uuid7(), email=email, name=name, password_hash=password_hash, created_at=datetime.now(UTC)
    )
    async with server.db.transaction() as tx:
        ctx = WriteContext(tx, plan_manager_id, server.settings, SYSTEM)
        assert await store.insert(tx, account)
        assert await members.add(ctx, account, members.validate_role(role))
    return Account(email, account.id)


@cache
def _hash_password(hasher: PasswordHasher) -> str:
    return hasher.hash(encode_password(PASSWORD))


async def open_session(server: RunningServer, account: Account) -> tuple[str, str]:
    """The tokens of a session and of a known device, as the sign-in page gives them."""
    async with server.db.transaction() as tx:
        row = await store.get_by_email(tx, account.email)
        assert row
        client = ClientInfo("127.0.0.1", "a browser of a test")
        result = await sessions.complete_sign_in(tx, server.settings, row, client, None, "")
        return result.token, result.device_token or ""


async def give_permissions(server: RunningServer, account: Account, permissions: list[Any]) -> None:
    """Make the account a manager with these permissions, in each of its plan managers."""
    async with server.db.transaction() as tx:
        for membership in await member_store.list_memberships(tx, account.account_id):
            ctx = WriteContext(tx, membership.plan_manager_id, server.settings, SYSTEM)
            await members.change_role(ctx, account.account_id, "manager", RoleDetails(permissions))
