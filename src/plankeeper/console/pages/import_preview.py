"""An import that is tried: all of it happens in the transaction, is looked at, and is undone; or stays."""

import asyncio
import io
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from uuid_utils.compat import uuid7

from plankeeper.console.concurrency import Places
from plankeeper.console.pages.activity import Change, changes_of
from plankeeper.console.routing import Act
from plankeeper.console.templating import members
from plankeeper.events import store as events
from plankeeper.events.schemas import Event
from plankeeper.http.context import Write
from plankeeper.http.errors import Invalid
from plankeeper.import_export.constraint_errors import EXPLANATIONS
from plankeeper.import_export.importer import Report, load
from plankeeper.import_export.reader import BadLine, Line, Unreadable
from plankeeper.import_export.registry import RESOURCES, Resource
from plankeeper.import_export.upsert import BadLines, Tally
from plankeeper.note_types import store as note_types

MOST_LINES = 30_000
MOST_SECONDS = 30
MOST_SHOWN = 50  # records with what changes of them
_MOST_BYTES = 60_000  # of all that is shown of them: a page stays below 100 KB
_LONGEST = 200  # characters of one value, or of a fault

# Two imports at a time leave a worker's processor and connections to others.
PLACES = Places(2)


class Changed(NamedTuple):
    """A record that an import changes: what it is called, and what changes."""

    name: str
    changes: list[Change]


@dataclass(slots=True)
class Trial:
    """What an import did, or would do."""

    report: Report
    changed: list[Changed] = field(default_factory=list[Changed])

    @property
    def more_changed(self) -> int:
        return max(0, self.report.tally.changed - len(self.changed))

    @property
    def more_faults(self) -> int:
        return self.report.faults - len(self.report.bad)

    @property
    def does_something(self) -> bool:
        return not self.report.bad_lines and self.report.tally.created + self.report.tally.changed > 0


class _Undone(Exception):
    """Nothing of it stays."""


async def tried(act: Act, resource: str, content: bytes, *, keep: bool, notify: bool = False) -> Trial:
    """Import a file; without `keep`, or with bad lines, nothing is written. Raises Invalid where it is no such file."""
    require_size(content)
    call = replace(act.write, notify=notify) if keep else replace(act.write, request_id=str(uuid7()))
    trial = Trial(Report())
    limit = asyncio.timeout(MOST_SECONDS)
    try:
        with PLACES:
            async with limit, act.tx.savepoint():
                await _load(call, resource, content, trial, keep=keep)
    except _Undone:
        pass
    except Unreadable as error:
        raise Invalid(file=_cut(str(error), 2000)) from None
    except TimeoutError:
        if not limit.expired():
            raise
        raise Invalid(file=f"takes longer than {MOST_SECONDS} seconds; use plankeeper import for it") from None
    trial.report.bad = [each._replace(reason=_cut(each.reason)) for each in trial.report.bad]
    return trial


async def _load(call: Write, resource: str, content: bytes, trial: Trial, *, keep: bool) -> None:
    """Raises _Undone where it must not stay."""
    since = uuid7()
    trial.report = await load(call, _resource(resource), io.BytesIO(content), EXPLANATIONS, _nothing, alone=False)
    if keep and not trial.report.bad_lines:
        return
    found = await events.updates_of(call.tx, call.plan_manager_id, since, call.request_id or "", MOST_SHOWN)
    trial.changed = _told(found, call.settings.time_zone)
    raise _Undone


def require_size(content: bytes) -> None:
    """Raises Invalid for a file that is no text of so many lines."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise Invalid(file="is UTF-16; save it as CSV UTF-8")
    if content.startswith(b"PK\x03\x04"):
        raise Invalid(file="is a workbook; save it as CSV UTF-8")
    if not content.removeprefix(b"\xef\xbb\xbf").strip():
        raise Invalid(file="is empty")
    lines = content.count(b"\n") + content.count(b"\r") - content.count(b"\r\n")
    if lines > MOST_LINES:
        raise Invalid(file=f"has more than {MOST_LINES:,} lines; use plankeeper import for it, or send it in parts")


def _resource(name: str) -> Resource:
    found = RESOURCES[name]
    return replace(found, merge=_known_note_types) if name == "note-types" else found


async def _known_note_types(call: Write, lines: Sequence[Line[Any]]) -> Tally:
    """Note types by ids that there are, or without. The ids come from a sequence of all plan managers, which an import
    moves past the ids of its file, and no rollback moves back: the operator's command may do that, and nobody else.
    """
    numbers = [line.values.id for line in lines if isinstance(line.values.id, int)]
    known = {each.id for each in await note_types.fetch(call.tx, call.plan_manager_id, numbers)}
    unknown = [line for line in lines if isinstance(line.values.id, int) and line.values.id not in known]
    if unknown:
        reason = "is no note type's; leave it empty for a new one"
        raise BadLines([BadLine(line.number, "id", reason) for line in unknown])
    return await RESOURCES["note-types"].merge(call, lines)


def _told(found: list[Event], zone: ZoneInfo) -> list[Changed]:
    """The records that change, as many of them as a page bears."""
    told: list[Changed] = []
    left = _MOST_BYTES
    for event in found:
        changes = [Change(_cut(each.name), _shown(each.before), _shown(each.after)) for each in changes_of(event, zone)]
        name = _name_of(event, zone)
        left -= 600 + 2 * _bytes(name) + sum(300 + _bytes(each.name, each.before, each.after) for each in changes)
        if left < 0:
            break
        told.append(Changed(name, changes))
    return told


def _name_of(event: Event, zone: ZoneInfo) -> str:
    """What a record is called now, before the change."""
    known = members(event.data, zone) | members(event.previous, zone)
    words = [known.get(name, "—") for name in ("first_name", "last_name")]
    called = " ".join(each for each in words if each not in ("—", "(empty)"))
    others = (known.get(name, "—") for name in ("entity_name", "note_type", "invoice_number", "name", "email"))
    return _cut(called or next((each for each in others if each != "—"), event.resource.id), 60)


def _bytes(*texts: str | None) -> int:
    """What texts take of a page, in which they are escaped."""
    return sum(len(escape(each or "").encode()) for each in texts)


def _shown(text: str | None) -> str | None:
    return text if text is None else _cut(text)


def _cut(text: str, longest: int = _LONGEST) -> str:
    return text if len(text) <= longest else text[:longest] + "…"


def _nothing(_lines: int) -> None:
    """Nobody is told how far an import is."""
