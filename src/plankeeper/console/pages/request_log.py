"""Requests: what API keys asked lately, newest first."""

import re
from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import urlencode
from uuid import UUID

from plankeeper.api_keys import store as keys
from plankeeper.console.routing import PREFIX, Look, Page, Pages
from plankeeper.http.parsing import uuid_of
from plankeeper.request_log import store
from plankeeper.request_log.schemas import KEPT, Request

pages = Pages()

PAGE = 100
# How many are read at a time: few where much was asked in a second, many where little, and never so many that other
# requests wait for long.
BATCHES = (20, 200, *[1000] * (KEPT // 1000))
STATUSES = {"2xx": "done", "4xx": "refused", "5xx": "failed"}


class Place(NamedTuple):
    """Where a request stands: its batch, and how many of the batch are older."""

    batch: UUID
    older: int


@pages.get("/requests", need="viewer")
async def list_(look: Look) -> Page:
    longest = {"key": 36, "status": 3, "text": 200, "request_id": 128}
    filters = {name: look.query.text(name)[:most] for name, most in longest.items()}
    before = place_of(look.query.text("before"))
    rows = await found(look, wanted(filters), before)
    given = {name: value for name, value in filters.items() if value}
    older = None
    if len(rows) > PAGE:
        place = rows[PAGE - 1][0]
        older = f"{PREFIX}/requests?{urlencode(given | {'before': f'{place.batch}.{place.older}'})}"
    # Workers write down what each answered in a second: within that, their requests are put in order here.
    requests = sorted((request for _, request in rows[:PAGE]), key=lambda each: each.answered_at, reverse=True)
    names = {str(each.id): each for each in await keys.fetch_of(look.db, look.plan_manager_id)}
    shown = {"requests": requests, "keys": names, "older": older, "statuses": STATUSES, "filtered": bool(given)}
    kept = look.settings.request_log_retention
    return Page("requests.html", {**shown, "filters": filters, "before": before, "days": kept, "most": KEPT})


def wanted(filters: dict[str, str]) -> Callable[[Request], bool]:
    """Whether a request is one that is looked for."""
    key, status, request_id = filters["key"], filters["status"].lower().rstrip("x"), filters["request_id"]
    words = filters["text"].lower().split()

    def is_wanted(request: Request) -> bool:
        if (key and request.key_id != key) or (request_id and request.request_id != request_id):
            return False
        if not str(request.status).startswith(status):
            return False
        told = f"{request.method} {request.path} {request.route}".lower() if words else ""
        return all(word in told for word in words)

    return is_wanted


async def found(look: Look, is_wanted: Callable[[Request], bool], before: Place | None) -> list[tuple[Place, Request]]:
    """The requests of one page and one more, newest first, from the newest ones that are kept at all."""
    rows: list[tuple[Place, Request]] = []
    newest, looked = before.batch if before else None, 0
    for size in BATCHES:
        batches = await store.latest(look.db, look.plan_manager_id, newest, size + 1)
        for batch in batches[:size]:
            numbered = list(enumerate(batch.requests))
            if before and batch.id == before.batch:
                numbered = numbered[: before.older]
            looked += len(numbered)
            rows += [(Place(batch.id, at), each) for at, each in reversed(numbered) if is_wanted(each)]
            if len(rows) > PAGE or looked >= KEPT:
                return rows[: PAGE + 1]
        if len(batches) <= size:
            break
        newest = batches[-1].id
    return rows


def place_of(text: str) -> Place | None:
    """Where a list goes on; null at its beginning."""
    batch, _, older = text.partition(".")
    known = uuid_of(batch)
    return Place(known, int(older)) if known and re.fullmatch("[0-9]{1,6}", older) else None
