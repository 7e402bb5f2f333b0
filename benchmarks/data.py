"""The participants that are loaded into every system: one CSV file per size, always the same."""

import csv
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

from plankeeper.cli.sample_data.participants import (
    generate_account_managers,
    generate_exit_reasons,
    generate_participants,
)
from plankeeper.cli.sample_data.random_values import uuid7

TENANT = "017a5f00-0000-7000-8000-0000000be9c4"

# The columns of the participant list, as they are stored: references are ids.
COLUMNS = {
    "id": "uuid",
    "first_name": "text",
    "middle_name": "text",
    "last_name": "text",
    "preferred_name": "text",
    "participant_number": "text",
    "email": "text",
    "phone_number": "text",
    "date_of_birth": "date",
    "gender": "text",
    "pronouns": "text",
    "state": "text",
    "postcode": "text",
    "address_line_1": "text",
    "address_line_2": "text",
    "city": "text",
    "service_region_id": "text",
    "status": "text",
    "approval_required": "boolean",
    "onboard_date": "date",
    "created_at": "timestamptz",
    "date_ceased": "date",
    "reason_for_leaving": "text",
    "exit_reason_category_id": "uuid",
    "exit_reason_subcategory_id": "uuid",
    "account_manager_id": "uuid",
    "is_pace_plan": "boolean",
    "plan_start_date": "date",
    "plan_end_date": "date",
    "postal_statement": "boolean",
    "participant_receives_statements": "boolean",
}
BASIC = ("id", "first_name", "last_name", "participant_number", "email", "state")
REFERENCES = ("exit_reason_category_id", "exit_reason_subcategory_id", "account_manager_id")

STATUS, STATE = "Active", "NSW"  # of the filtered list

_BASE_PARTICIPANTS = 10_000  # generated like the sample data; larger sets repeat them with other ids
_SAMPLE_SIZE = 50_000  # ids for requests
_TAIL_ROWS = 1_100  # rows after a cursor, so that a page of 1,000 is full


@dataclass(frozen=True)
class Dataset:
    """The files of one size, with the ids in ascending order, the rows that match the filter, and the middle row."""

    folder: Path
    rows: int
    ids: list[str]
    matching: list[str]
    middle: dict[str, str]

    @property
    def participants(self) -> Path:
        return self.folder / f"participants-{self.rows}.csv"

    def sample(self) -> list[str]:
        """Ids of random rows. The first is the middle row, whose values are verified."""
        return self._with_middle_first(0, _sample_ids(self.ids))

    def cursors(self) -> list[str]:
        """Ids followed by a full page of 1,000 rows, or 20 in a small set. The first is just before the middle row."""
        return self._with_middle_first(1, _sample_ids(self.ids[: max(self.rows - _TAIL_ROWS, self.rows // 2)]))

    @property
    def offset(self) -> int:
        """The offset of a page of 20 in the middle of the list."""
        return self.rows // 40 * 20

    def deep(self) -> list[str]:
        """Ids about nine tenths down the list."""
        return _sample_ids(self.ids[self.rows * 89 // 100 : self.rows * 91 // 100])

    def part(self, number: int, rows: int) -> "Dataset":
        """The part of one of several plan managers that share this data set."""
        ids = self.ids[number * rows : (number + 1) * rows]
        start, stop = bisect_left(self.matching, ids[0]), bisect_right(self.matching, ids[-1])
        return replace(self, rows=rows, ids=ids, matching=self.matching[start:stop])

    def lines(self, number: int, rows: int) -> str:
        """The part as CSV with the header."""
        with self.participants.open() as file:
            return file.readline() + "".join(islice(file, number * rows, (number + 1) * rows))

    def ids_after(self, cursor: str, limit: int) -> list[str]:
        start = bisect_right(self.ids, cursor)
        return self.ids[start : start + limit]

    def _with_middle_first(self, offset: int, ids: list[str]) -> list[str]:
        index = bisect_left(self.ids, self.middle["id"])
        is_here = index >= offset and self.middle["id"] in self.ids[index : index + 1]
        return [self.ids[index - offset], *ids] if is_here else ids


def dataset(work: Path, rows: int) -> Dataset:
    """The data set of `rows` participants. Writes its files if they do not exist."""
    folder = work / "data"
    path = folder / f"participants-{rows}.csv"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        _write_files(folder, path, rows)
    ids: list[str] = []
    matching: list[str] = []
    middle: dict[str, str] = {}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            if len(ids) == rows // 2:
                middle = row
            ids.append(row["id"])
            if row["status"] == STATUS and row["state"] == STATE:
                matching.append(row["id"])
    return Dataset(folder, rows, ids, matching, middle)


def _sample_ids(ids: list[str]) -> list[str]:
    return Random(1).sample(ids, min(len(ids), _SAMPLE_SIZE))


def _write_files(folder: Path, path: Path, rows: int) -> None:
    rng = Random("benchmark")
    reasons = generate_exit_reasons(rng)
    managers = generate_account_managers(rng, "benchmark.example.com")
    _write(folder / "exit-reasons.csv", list(reasons[0]), iter(reasons))
    _write(folder / "account-managers.csv", list(managers[0]), iter(managers))
    participants = generate_participants(rng, min(rows, _BASE_PARTICIPANTS), managers, reasons)
    temporary_path = path.with_suffix(".part")
    _write(temporary_path, list(COLUMNS), _replicate(rng, participants, rows))
    temporary_path.rename(path)


def _replicate(rng: Random, participants: list[dict[str, Any]], rows: int) -> Iterator[dict[str, Any]]:
    """Yield `rows` rows in order of id, each with a unique id, number and email."""
    timestamps = [datetime.fromisoformat(each["created_at"]) for each in participants]
    indexes = (number % len(participants) for number in range(rows))
    ids = sorted((uuid7(rng, timestamps[index]), index) for index in indexes)
    for position, (row_id, index) in enumerate(ids):
        row = participants[index]
        name, at, domain = (row["email"] or "").partition("@")
        yield row | {
            "id": row_id,
            "participant_number": str(430_000_000 + position * 7_654_321 % 10_000_000),
            "email": f"{name}.{position}{at}{domain}" if at else None,
        }


def _write(path: Path, columns: list[str], rows: Iterator[dict[str, Any]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows([_cell(row[name]) for name in columns] for row in rows)


def _cell(value: object) -> object:
    """A value as both `plankeeper import` and COPY read it: empty is null, booleans are lower case."""
    return str(value).lower() if isinstance(value, bool) else value


def tenant_ids(count: int) -> list[str]:
    """Ids of `count` plan managers."""
    return [str(UUID(int=UUID(TENANT).int + 1 + number)) for number in range(count)]
