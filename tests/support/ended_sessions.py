"""Sessions that end while a form is open."""

from urllib.parse import parse_qs, urlsplit
from uuid import UUID

from support.server import RunningServer


def end_sessions(server: RunningServer, account_id: UUID) -> None:
    """As if an account had not used the console for two hours."""
    statement = "update account_sessions set last_seen_at = last_seen_at - interval '2 hours' where account_id = $1"
    server.run(server.db.execute(statement, account_id))


def next_path(location: str) -> str:
    """The page that a sign-in leads to."""
    return parse_qs(urlsplit(location).query)["next"][0]
