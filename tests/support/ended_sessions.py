"""Sessions that end while a form is open."""

import re
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

from support.console import Browser
from support.server import RunningServer

NEW = "/console/participants/new"
PARTICIPANTS = "/console/participants"
TYPED = {"first_name": "Ann <b>", "city": "Hobart", "date_of_birth": "3/2/1990", "email": "ann@example.com"}


def end_sessions(server: RunningServer, account_id: UUID) -> None:
    """As if an account had not used the console for two hours."""
    statement = "update account_sessions set last_seen_at = last_seen_at - interval '2 hours' where account_id = $1"
    server.run(server.db.execute(statement, account_id))


def next_path(location: str) -> str:
    """The page that a sign-in leads to."""
    return parse_qs(urlsplit(location).query)["next"][0]


def kept_count(server: RunningServer, account_id: UUID) -> int:
    statement = "select count(*) from form_drafts where $1 = any (account_ids)"
    return server.run(server.db.one(int, statement, account_id))


def send_after_the_end(server: RunningServer, browser: Browser, account_id: UUID, **fields: Any) -> str:
    """Submit the form of a new participant after the session has ended: where the sign-in leads to."""
    csrf = browser.csrf()
    end_sessions(server, account_id)
    response = browser.http.post(
        PARTICIPANTS, data={"csrf": csrf, **(fields or TYPED)}, headers={"Origin": browser.url}
    )
    assert response.status_code == 303, response.text
    return response.headers["location"]


def require_resumed(page: str, message: str) -> None:
    """The page shows what was typed, and says that it isn't saved."""
    assert message in page
    assert re.search('role="alert" tabindex="-1" autofocus>', page)
    shown = {unescape(name): unescape(value) for name, value in re.findall(r'name="(\w+)" [^>]*?value="([^"]*)"', page)}
    assert {name: shown[name] for name in TYPED} == TYPED | {"date_of_birth": "3 Feb 1990"}
