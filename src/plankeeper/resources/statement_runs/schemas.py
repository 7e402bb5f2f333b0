"""Schemas of runs of statements: responses, request bodies, queries and stored rows."""

import datetime as dt
from typing import Annotated, Literal
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType

from plankeeper.core.fields import EXTENSION, AwareDatetime, CreatedAt, UpdatedAt, UuidText, component
from plankeeper.core.lists import DefaultSort, ResourceListQuery, StatesFilter
from plankeeper.resources.statements.schemas import MonthText, SendWay

MAX_RETRIED = 1000  # items in a request

RunState = Annotated[
    Literal["running", "ended"],
    component("StatementRunState", "`running`: statements are being made. `ended`: each plan has its item."),
]
ItemState = Annotated[
    Literal["made", "sent", "to_print", "skipped", "failed"],
    component(
        "StatementRunItemState",
        "`made`: a mail waits for the mail server. `sent`: everybody has it. `to_print`: it is in the print file."
        " `skipped`: nobody gets it. `failed`: somebody should get it, and doesn't.",
    ),
]
ItemReason = Annotated[
    Literal[
        "deceased",
        "not_managed",
        "opted_out",
        "no_recipient",
        "no_postal_address",
        "no_mail_server",
        "mail_failed",
        "unprintable",
        "error",
    ],
    component("StatementRunItemReason", "Why a statement isn't made, or isn't sent to somebody."),
]
RecipientKind = Annotated[
    Literal["participant", "team_member"], component("StatementRecipientKind", "`participant` or `team_member`.")
]
RecipientState = Annotated[
    Literal["waiting", "sent", "to_print", "cancelled", "failed"],
    component(
        "StatementRecipientState",
        "`waiting`: for the mail server. `to_print`: in the print file. `cancelled`: the person doesn't get it any"
        " more, or the participant has died.",
    ),
]


class StatementRun(Struct, kw_only=True):
    """The statements of all plans of a month. The five numbers after `plans` count its items by state."""

    id: Annotated[UUID, Meta(description="The run's UUID.")]
    month: Annotated[MonthText, Meta(description="The month, such as `2026-10`.")]
    state: Annotated[RunState, Meta(description="`running` or `ended`.")]
    run_date: Annotated[dt.date, Meta(description="The day on which it was first started.")]
    plans: Annotated[int, Meta(description="The number of plans in force on a day of the month, at its last start.")]
    made: Annotated[int, Meta(description="Statements that wait for the mail server.")]
    sent: Annotated[int, Meta(description="Statements that everybody has.")]
    to_print: Annotated[int, Meta(description="Statements in the print file.")]
    skipped: Annotated[int, Meta(description="Plans whose statement nobody gets.")]
    failed: Annotated[int, Meta(description="Plans whose statement somebody should get, and doesn't.")]
    problem: Annotated[
        str | None, Meta(description="Why a running one doesn't continue, for people, or null. It tries again.")
    ]
    created_at: CreatedAt
    created_by: Annotated[str | None, Meta(description="The account or the API key that started it first.")]
    started_at: Annotated[AwareDatetime, Meta(description="When it was last started.")]
    ended_at: Annotated[AwareDatetime | None, Meta(description="When it ended, or null while it is running.")]
    updated_at: UpdatedAt


class StatementRecipient(Struct, kw_only=True):
    """Somebody who gets a statement."""

    kind: Annotated[RecipientKind, Meta(description="`participant` or `team_member`.")]
    id: Annotated[UUID, Meta(description="The UUID of the participant or of the team member.")]
    way: Annotated[SendWay, Meta(description="`mail` or `post`.")]
    state: Annotated[RecipientState, Meta(description="Whether it was sent.")]
    message: Annotated[str | None, Meta(description="Why it isn't sent, for people, or null. Its text can change.")]


class StatementRunItem(Struct, kw_only=True):
    """What a run has done for a plan."""

    id: Annotated[UUID, Meta(description="The item's UUID. A retry can replace the item with one of another id.")]
    run_id: Annotated[UUID, Meta(description="The run's UUID.")]
    participant_id: Annotated[UUID, Meta(description="The participant's UUID.")]
    plan_id: Annotated[UUID, Meta(description="The plan's UUID.")]
    statement_id: Annotated[UUID | None, Meta(description="The statement's UUID; null if none was made.")]
    state: Annotated[ItemState, Meta(description="`made`, `sent`, `to_print`, `skipped` or `failed`.")]
    reason: Annotated[ItemReason | None, Meta(description="Why it was skipped or has failed, or null.")]
    message: Annotated[str | None, Meta(description="The reason as a sentence, or null. Its text can change.")]
    recipients: Annotated[list[StatementRecipient], Meta(description="Who gets it.")]
    created_at: CreatedAt
    updated_at: UpdatedAt


class NewStatementRun(Struct, forbid_unknown_fields=True, kw_only=True):
    """The month whose statements are made."""

    month: Annotated[MonthText, EXTENSION, Meta(description="The month, such as `2026-10`. It must have ended.")]


class StatementRunRetry(Struct, forbid_unknown_fields=True, kw_only=True):
    """The items to try again."""

    item_ids: Annotated[
        Annotated[list[UuidText], Meta(min_length=1, max_length=MAX_RETRIED)] | UnsetType,
        EXTENSION,
        Meta(description="Items that have failed, or that nobody receives. Default: all of them."),
    ] = UNSET


class StatementRunListQuery(ResourceListQuery, frozen=True):
    """Filters of the list, combined with AND."""

    sort: DefaultSort = UNSET
    state: StatesFilter[RunState] = UNSET


class StatementRunItemListQuery(ResourceListQuery, frozen=True):
    """Filters of the list, combined with AND."""

    sort: DefaultSort = UNSET
    state: StatesFilter[ItemState] = UNSET


class RunningRun(Struct, kw_only=True):
    """A run that is being worked on. `position` is the last plan of this pass, or null."""

    id: UUID
    plan_manager_id: UUID
    month: dt.date
    position: UUID | None


class DuePlan(Struct, kw_only=True):
    """A plan without an item."""

    id: UUID
    participant_id: UUID


class Member(Struct, kw_only=True):
    """A team member who gets statements by mail."""

    id: UUID
    email: str


class Person(Struct, kw_only=True):
    """What decides who gets a participant's statement. `members` have an email and the permission."""

    id: UUID
    status: str
    email: str | None
    receives_mail: bool
    receives_post: bool
    has_postal_address: bool
    managed_from: dt.date | None
    managed_until: dt.date | None
    date_ceased: dt.date | None
    deceased_on: dt.date | None
    members: list[Member]


class ItemRow(Struct, kw_only=True):
    """A row of the items."""

    id: UUID
    run_id: UUID
    plan_id: UUID
    participant_id: UUID
    statement_id: UUID | None
    state: ItemState
    reason: ItemReason | None
    message: str | None
    created_at: AwareDatetime


class RecipientRow(Struct, kw_only=True):
    """A row of the recipients."""

    id: UUID
    item_id: UUID
    way: SendWay
    recipient_kind: RecipientKind
    recipient_id: UUID
    state: RecipientState
    reason: ItemReason | None
    message: str | None
    queued_at: AwareDatetime


class DueOffice(Struct, kw_only=True):
    """An office with a day of the month for its statements."""

    plan_manager_id: UUID
    day: int
    set_on: dt.date | None
    last_month: dt.date | None  # of its latest run


class Letter(Struct, kw_only=True):
    """A recipient by post, with the name and the address as they are now."""

    id: UUID
    item_id: UUID
    participant_id: UUID
    statement_id: UUID
    queued_at: AwareDatetime
    office: str
    name: str
    address_line_1: str | None
    address_line_2: str | None
    city: str | None
    state: str | None
    postcode: str | None
