"""An invitation and two-factor authentication in a real browser."""

import time
from collections.abc import Callable
from typing import Any
from uuid import UUID

from pyotp.totp import TOTP

from support.chromium import copy_text
from support.console import (
    PASSWORD,
    Account,
    fill_sign_in_form,
    open_account_menu,
    open_signed_in,
    sign_out,
    wait_until_signed_in,
)
from support.server import RunningServer


def test_an_invited_member_joins_with_the_link(
    server: RunningServer, page: Any, new_account: Callable[..., Account], plan_manager_id: UUID
) -> None:
    email = f"{plan_manager_id}@example.com"
    open_signed_in(page, server, new_account("owner"))
    page.get_by_role("link", name="Settings").click()
    page.get_by_role("link", name="People").click()
    page.get_by_role("link", name="Invite a person").click()
    page.get_by_label("Email").fill(email)
    page.get_by_label("Name").fill("Kim Nguyen")
    page.get_by_label("Role").select_option("manager")
    page.get_by_role("button", name="Create invitation").click()
    link = page.get_by_label("Invitation link").inner_text()
    assert copy_text(page.get_by_role("button", name="Copy").first) in {"Copied", "Selected"}
    page.get_by_role("link", name="Done").click()
    page.get_by_text(email).wait_for()
    sign_out(page)
    page.get_by_role("heading", name="Sign in").wait_for()
    page.goto(link)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Join").click()
    page.get_by_role("status").filter(has_text="You joined").wait_for()


def test_two_factor_is_enabled_and_required(
    server: RunningServer, page: Any, new_account: Callable[..., Account]
) -> None:
    person = new_account("viewer")
    fill_sign_in_form(page, person.email)
    open_account_menu(page)
    page.get_by_role("link", name="Your account").click()
    page.get_by_role("link", name="Turn on two-factor authentication").click()
    picture = page.get_by_role("img", name="QR code with the setup key below")
    assert picture.evaluate("each => each.complete && each.naturalWidth") > 100
    codes = TOTP(page.get_by_label("Setup key").inner_text().replace(" ", ""))
    page.get_by_label("Code").fill("000000")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Turn on").click()
    page.get_by_role("alert").filter(has_text="is not the current code of the app").wait_for()
    page.get_by_label("Code").fill(codes.now())
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Turn on").click()
    recovery = page.get_by_label("Recovery codes").inner_text().split()
    assert len(recovery) == 10
    page.get_by_role("link", name="Done").click()
    page.get_by_role("heading", name="Your account").wait_for()
    for code in (codes.generate_otp(int(time.time()) // 30 + 1), recovery[3]):
        sign_out(page)
        page.get_by_role("heading", name="Sign in").wait_for()
        fill_sign_in_form(page, person.email)
        page.get_by_label("Code").fill(code)
        page.get_by_role("button", name="Continue").click()
        wait_until_signed_in(page)
    open_account_menu(page)
    page.get_by_role("link", name="Your account").click()
    page.get_by_text("Recovery codes left").wait_for()
    assert page.locator("main dd").last.inner_text() == "9"


def test_a_role_shows_only_what_it_needs(new_visitor: Callable[[str], Any]) -> None:
    visitor = new_visitor("owner")
    visitor.goto("/console/settings/people/invite")
    permissions = visitor.get_by_role("group", name="Permissions of a manager")
    limits = visitor.get_by_role("group", name="Limits of a viewer")
    for role, shown in (("viewer", (False, True)), ("manager", (True, False)), ("owner", (False, False))):
        visitor.get_by_label("Role").select_option(role)
        assert (permissions.is_visible(), limits.is_visible()) == shown
