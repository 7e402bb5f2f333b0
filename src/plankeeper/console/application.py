"""All pages of the console as one ASGI application."""

from starlette.types import ASGIApp

from plankeeper.console import activity, answers, entering, keys, webhooks
from plankeeper.console.frame import Frame, PagePath
from plankeeper.console.pages import PREFIX, Entry
from plankeeper.edge.paths import Paths

PARTS = (entering.pages, keys.pages, webhooks.pages, activity.pages)


def entries() -> list[Entry]:
    return [entry for part in PARTS for entry in part.entries]


def console(frame: Frame) -> ASGIApp:
    by_path: dict[str, dict[str, Entry]] = {}
    for entry in entries():
        by_path.setdefault(entry.path, {})[entry.method] = entry
    paths: dict[str, ASGIApp] = {path: PagePath(frame, path, methods) for path, methods in by_path.items()}
    paths[f"{PREFIX}/assets/{{name}}"] = answers.file
    return Paths(paths, otherwise=PagePath(frame, None, {}))
