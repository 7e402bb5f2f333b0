"""All pages of the console as one ASGI application."""

from starlette.types import ASGIApp

from plankeeper.console import responses
from plankeeper.console.endpoint import Frame, PagePath
from plankeeper.console.pages import (
    account,
    account_managers,
    activity,
    api_keys,
    imports,
    invoices,
    members,
    note_types,
    participants,
    providers,
    request_log,
    sign_in,
    team_members,
    view_sessions,
    webhooks,
)
from plankeeper.console.routing import PREFIX, Entry
from plankeeper.http.path_router import Paths

PARTS = (
    sign_in.pages, account.pages, participants.pages, team_members.pages, invoices.pages, view_sessions.pages,
    providers.pages, activity.pages, members.pages, api_keys.pages, webhooks.pages, account_managers.pages,
    note_types.pages, imports.pages, request_log.pages,
)  # fmt: skip


def entries() -> list[Entry]:
    return [entry for part in PARTS for entry in part.entries]


def console(frame: Frame) -> ASGIApp:
    by_path: dict[str, dict[str, Entry]] = {}
    for entry in entries():
        by_path.setdefault(entry.path, {})[entry.method] = entry
    paths: dict[str, ASGIApp] = {path: PagePath(frame, path, methods) for path, methods in by_path.items()}
    paths[f"{PREFIX}/assets/{{name}}"] = responses.file
    return Paths(paths, otherwise=PagePath(frame, None, {}))
