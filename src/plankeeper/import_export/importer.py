"""An import: a whole file in one transaction, or nothing of it and a report of every bad line."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import asyncpg

from plankeeper.database.client import broken
from plankeeper.http.context import Write
from plankeeper.http.routing import Explanation
from plankeeper.import_export.reader import BadLine, Line, read
from plankeeper.import_export.registry import Resource
from plankeeper.import_export.upsert import BadLines, Tally

BATCH = 1000
SHOWN = 100  # bad lines in a report

_BROKEN = (asyncpg.IntegrityConstraintViolationError, asyncpg.CardinalityViolationError)


@dataclass(slots=True)
class Report:
    """What an import did: with any bad line it wrote nothing. `all_known`: no bad line was left uncounted."""

    tally: Tally = field(default_factory=Tally)
    lines: int = 0
    bad: list[BadLine] = field(default_factory=list[BadLine])
    bad_lines: set[int] = field(default_factory=set[int])
    faults: int = 0
    all_known: bool = True
    doubts: list[BadLine] = field(default_factory=list[BadLine])
    doubtful: int = 0

    def refuse(self, fault: BadLine) -> None:
        self.bad_lines.add(fault.number)
        self.faults += 1
        if len(self.bad) < SHOWN:
            self.bad.append(fault)

    def question(self, line: Line[Any], doubt: str | None) -> None:
        if doubt:
            self.doubtful += 1
            if len(self.doubts) < SHOWN:
                self.doubts.append(BadLine(line.number, "", doubt))


async def load(
    call: Write,
    resource: Resource,
    file: Iterable[bytes],
    explanations: Mapping[str, Explanation],
    progress: Callable[[int], None],
    *,
    alone: bool = True,
) -> Report:
    """Merge a file into `call.tx`. With bad lines in the report, the caller must roll back.

    `progress` is told the lines read so far. Raises Unreadable where the file as a whole is no import file.
    `alone`: nothing else waits for this process, and this one may wait for others.
    """
    report = Report()
    batch: list[Line[Any]] = []
    for line in read(file, resource.shape):
        if isinstance(line, BadLine):
            report.refuse(line)
            if not alone and report.faults % SHOWN == 0:
                await asyncio.sleep(0)
            continue
        report.lines += 1
        report.question(line, resource.doubt(line.values))
        batch.append(line)
        if len(batch) == BATCH:
            await _merge(call, resource, batch, explanations, report)
            progress(report.lines)
            batch = []
            if report.lines == BATCH:
                await call.tx.analyze(*resource.tables, waits=alone)
    if batch:
        await _merge(call, resource, batch, explanations, report)
        progress(report.lines)
    return report


async def _merge(
    call: Write,
    resource: Resource,
    batch: Sequence[Line[Any]],
    explanations: Mapping[str, Explanation],
    report: Report,
) -> None:
    """Merge a batch at once; one that breaks a constraint line by line, to learn which lines do."""
    try:
        async with call.tx.savepoint():
            report.tally.add(await resource.merge(call, batch))
    except BadLines as bad:
        for fault in bad.faults:
            report.refuse(fault)
        # The others are merged all the same, to find what else is wrong in the file.
        rest = [line for line in batch if line.number not in report.bad_lines]
        if rest:
            await _merge(call, resource, rest, explanations, report)
    except _BROKEN as error:
        if len(batch) == 1:
            report.refuse(await _explained(call, batch[0], error, explanations))
        elif len(report.bad) < SHOWN:
            await _merge_each(call, resource, batch, explanations, report)
        else:
            report.all_known = False


async def _merge_each(
    call: Write,
    resource: Resource,
    batch: Sequence[Line[Any]],
    explanations: Mapping[str, Explanation],
    report: Report,
) -> None:
    """Merge line by line. One that fails is tried again after the others: what it refers to may stand behind it."""
    waiting = list(batch)
    faults: list[BadLine] = []
    while waiting:
        failed: list[Line[Any]] = []
        faults = []
        for line in waiting:
            alone = Report()
            await _merge(call, resource, [line], explanations, alone)
            report.tally.add(alone.tally)
            if alone.bad:
                failed.append(line)
                faults += alone.bad
        if len(failed) == len(waiting):
            break
        waiting = failed
    for fault in faults:
        report.refuse(fault)


async def _explained(
    call: Write, line: Line[Any], error: asyncpg.PostgresError, explanations: Mapping[str, Explanation]
) -> BadLine:
    fault = broken(error) if isinstance(error, asyncpg.IntegrityConstraintViolationError) else None
    explain = explanations.get(fault.constraint) if fault else None
    if explain is None or fault is None:
        raise error
    refusal = await explain(call.tx, call.plan_manager_id, fault)
    for fault in refusal.errors or []:
        return BadLine(line.number, fault.field, fault.message)
    return BadLine(line.number, "", refusal.detail)
