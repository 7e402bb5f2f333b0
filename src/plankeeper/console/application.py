"""All pages of the console as one ASGI application."""

from starlette.types import ASGIApp

from plankeeper.console import (
    account_managers,
    activity,
    answers,
    entering,
    importing,
    invoices,
    keys,
    note_types,
    own,
    participants,
    people,
    providers,
    requests,
    team_members,
    viewing,
    webhooks,
)
from plankeeper.console.frame import Frame, PagePath
from plankeeper.console.pages import PREFIX, Entry
from plankeeper.http.path_router import Paths

PARTS = (
    entering.pages, own.pages, participants.pages, team_members.pages, invoices.pages, viewing.pages,
    providers.pages, activity.pages, people.pages, keys.pages, webhooks.pages, account_managers.pages,
    note_types.pages, importing.pages, requests.pages,
)  # fmt: skip


def entries() -> list[Entry]:
    return [entry for part in PARTS for entry in part.entries]


def console(frame: Frame) -> ASGIApp:
    by_path: dict[str, dict[str, Entry]] = {}
    for entry in entries():
        by_path.setdefault(entry.path, {})[entry.method] = entry
    paths: dict[str, ASGIApp] = {path: PagePath(frame, path, methods) for path, methods in by_path.items()}
    paths[f"{PREFIX}/assets/{{name}}"] = answers.file
    return Paths(paths, otherwise=PagePath(frame, None, {}))
