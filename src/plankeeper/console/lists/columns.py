"""Columns that several lists have. Their participants are in the names, by `participant` and id."""

from typing import Any

from plankeeper.console.components.labels import program_name
from plankeeper.console.lists.definition import Column, Names
from plankeeper.resources.participants.schemas import Participant


def participant_of(row: Any, names: Names) -> Participant | None:
    return names.get(("participant", row.participant_id))


def _participant_number(row: Any, names: Names) -> str | None:
    participant = participant_of(row, names)
    return participant.participant_number if participant else None


def _account_manager(row: Any, names: Names) -> str | None:
    participant = participant_of(row, names)
    return participant.account_manager.name if participant else None


def _made_by(row: Any, _names: Names) -> str:
    return program_name(row.created_by or "")


PARTICIPANT_NUMBER = Column("participant_number", "NDIS number", "text", _participant_number)
ACCOUNT_MANAGER = Column("account_manager", "Account manager", "text", _account_manager)
MADE_BY = Column("created_by", "Made by", "text", _made_by)
MADE_AT = Column("made_at", "Made", "datetime", path="created_at")  # phones say "received" before a column created_at
