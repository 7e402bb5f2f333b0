"""Schemas of statements: responses, request bodies, queries and stored rows."""

import datetime as dt
from decimal import Decimal
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from plankeeper.core.fields import EXTENSION, AwareDatetime, CreatedAt, MonthText, UpdatedAt, UuidText, component
from plankeeper.core.lists import DefaultSort, ResourceListQuery

Money = Decimal  # an exact JSON number, in dollars to the cent
SendWay = Annotated[Literal["mail", "post"], component("StatementSendWay", "`mail`: email. `post`: a letter.")]
LineKind = Annotated[
    Literal["service", "reimbursement", "fee"],
    component(
        "StatementLineKind",
        "`service`: paid to a provider. `reimbursement`: paid to the participant. `fee`: the plan manager's own fee.",
    ),
]
LineState = Annotated[
    Literal[
        "waiting",
        "claimed",
        "approved",
        "partly_approved",
        "paid",
        "partly_paid",
        "rejected",
        "not_claimed",
        "cancelled",
    ],
    component(
        "StatementLineState",
        "`waiting`: not claimed yet. `claimed`: the agency hasn't answered. `approved`: the agency has paid, and the"
        " payment to the payee follows. `not_claimed`: it won't be claimed.",
    ),
]
AdjustmentWord = Annotated[
    Literal["refund", "reversal", "repayment"],
    component(
        "StatementAdjustmentKind",
        "`refund`: from the provider. `reversal`: the agency took money back. `repayment`: to the agency.",
    ),
]


class StatementComponent(Struct, frozen=True, kw_only=True):
    """A part of a plan's budget in a month. `available` is `amount` less the three sums before it."""

    id: Annotated[UUID, Meta(description="The component's UUID.")]
    name: Annotated[str, Meta(description="The name to display.")]
    amount: Annotated[Money, Meta(description="The budget, in dollars.")]
    spent_elsewhere: Annotated[Money, Meta(description="What others have spent of it. `spent_before` contains it.")]
    spent_before: Annotated[Money, Meta(description="What the agency has paid for services before the month.")]
    spent: Annotated[Money, Meta(description="What the agency has paid for services in the month.")]
    waiting: Annotated[
        Money,
        Meta(description="What isn't claimed yet, or has no result yet, for services up to the end of the month."),
    ]
    available: Annotated[Money, Meta(description="What is left. Below zero if the component is overdrawn.")]


class StatementAdjustment(Struct, frozen=True, kw_only=True):
    """Money that came back after the agency had paid."""

    kind: Annotated[AdjustmentWord, Meta(description="`refund`, `reversal` or `repayment`.")]
    amount: Annotated[Money, Meta(description="In dollars.")]
    date: Annotated[dt.date, Meta(description="The day of the refund, the reversal or the repayment.")]


class StatementLine(Struct, frozen=True, kw_only=True):
    """A line of an invoice, as it was when the statement was made."""

    line_id: Annotated[UUID, Meta(description="The line's UUID.")]
    invoice_id: Annotated[UUID, Meta(description="The invoice's UUID.")]
    invoice_number: Annotated[str | None, Meta(description="The provider's number of the invoice, or null.")]
    kind: Annotated[LineKind, Meta(description="`service`, `reimbursement` or `fee`.")]
    service_date: Annotated[dt.date, Meta(description="The first day of the service, or else the invoice's date.")]
    service_date_to: Annotated[dt.date | None, Meta(description="The last day of the service, or null.")]
    provider: Annotated[str | None, Meta(description="The provider's name, or null.")]
    item: Annotated[str | None, Meta(description="The support item number, or null.")]
    description: Annotated[str | None, Meta(description="What the invoice says about the service, or null.")]
    component_id: Annotated[UUID | None, Meta(description="The component that it counts for; null for none.")]
    amount: Annotated[Money, Meta(description="The price with tax, in dollars.")]
    spent: Annotated[Money, Meta(description="What the agency has paid, in dollars.")]
    waiting: Annotated[Money, Meta(description="What isn't claimed yet, or has no result yet, in dollars.")]
    state: Annotated[LineState, Meta(description="How far the claim and the payment have come.")]
    reason: Annotated[str | None, Meta(description="Why the agency rejected it, or null.")]
    adjustments: Annotated[
        list[StatementAdjustment], Meta(description="Refunds, reversals and repayments, in order of their days.")
    ]


class StatementChange(Struct, frozen=True, kw_only=True):
    """A line with an earlier service that is new, or has changed since the last statement of the plan that was sent."""

    line_id: Annotated[UUID, Meta(description="The line's UUID.")]
    before: Annotated[
        StatementLine | None, Meta(description="The line as the last statement knew it; null for a new line.")
    ]
    after: Annotated[
        StatementLine | None,
        Meta(description="The line now; null if it isn't an earlier service of the plan any more."),
    ]


class StatementParticipant(Struct, frozen=True, kw_only=True):
    """Whom the statement is for, as named when it was made."""

    name: Annotated[str, Meta(description="The full name.")]
    ndis_number: Annotated[str | None, Meta(description="The NDIS number, or null.")]


class StatementOffice(Struct, frozen=True, kw_only=True):
    """The plan manager's contact for questions."""

    name: Annotated[str, Meta(description="The plan manager's name.")]
    abn: Annotated[str | None, Meta(description="The ABN, or null.")]
    email: Annotated[str | None, Meta(description="The email address for questions, or null.")]
    phone: Annotated[str | None, Meta(description="The phone number for questions, or null.")]
    dispute: Annotated[
        str | None, Meta(description="What people should do who disagree with a line, in the office's words, or null.")
    ] = None


class StatementSend(Struct, frozen=True, kw_only=True):
    """To whom a statement was sent."""

    way: Annotated[SendWay, Meta(description="`mail` or `post`.")]
    recipient: Annotated[str, Meta(description="The email address, or the name of the recipient of the letter.")]
    sent_at: Annotated[AwareDatetime, Meta(description="When it was sent.")]


class StatementContent(Struct, kw_only=True):
    """What a statement says. It is stored when the statement is made, and never changes."""

    id: Annotated[UUID, Meta(description="The statement's UUID.")]
    participant_id: Annotated[UUID, Meta(description="The participant's UUID.")]
    plan_id: Annotated[UUID, Meta(description="The plan's UUID.")]
    previous_id: Annotated[
        UUID | None,
        Meta(description="The last statement of the plan for an earlier month that was sent, or null."),
    ]
    month: Annotated[MonthText, Meta(description="The month, such as `2026-10`.")]
    plan_start_date: Annotated[dt.date, Meta(description="The plan's first day.")]
    plan_end_date: Annotated[dt.date, Meta(description="The plan's last day.")]
    participant: Annotated[StatementParticipant, Meta(description="Whom the statement is for.")]
    office: Annotated[StatementOffice, Meta(description="The plan manager's contact.")]
    components: Annotated[list[StatementComponent], Meta(description="The parts of the plan's budget.")]
    lines: Annotated[list[StatementLine], Meta(description="The services of the month, in order of their days.")]
    earlier_changes: Annotated[
        list[StatementChange],
        Meta(description="Earlier services that are new or have changed since the statement `previous_id`."),
    ]
    created_at: CreatedAt
    created_by: Annotated[str | None, Meta(description="The account or the API key that made it.")]


class Statement(StatementContent, kw_only=True):
    """A statement of a plan and a month."""

    sent: Annotated[list[StatementSend], Meta(description="To whom it was sent, in order of time.")] = []
    updated_at: UpdatedAt


class StatementSummary(Struct, kw_only=True):
    """A statement in a list or in an event, without its numbers and lines."""

    id: Annotated[UUID, Meta(description="The statement's UUID.")]
    participant_id: Annotated[UUID, Meta(description="The participant's UUID.")]
    plan_id: Annotated[UUID, Meta(description="The plan's UUID.")]
    month: Annotated[MonthText, Meta(description="The month, such as `2026-10`.")]
    sent: Annotated[list[StatementSend], Meta(description="To whom it was sent, in order of time.")]
    created_at: CreatedAt
    created_by: Annotated[str | None, Meta(description="The account or the API key that made it.")]
    updated_at: UpdatedAt


class NewStatement(Struct, forbid_unknown_fields=True, kw_only=True):
    """The month and the plan of a new statement."""

    month: Annotated[MonthText, EXTENSION, Meta(description="The month, such as `2026-10`. It must have begun.")]
    plan_id: Annotated[
        UuidText | UnsetType,
        EXTENSION,
        Meta(description="The plan. Default: the last plan that is in force on a day of the month."),
    ] = UNSET
    after_death: Annotated[
        bool | UnsetType,
        EXTENSION,
        Meta(description="Must be `true` for a participant who has died: their statements have stopped."),
    ] = UNSET


class StatementListQuery(ResourceListQuery, frozen=True):
    """The query of the list."""

    sort: DefaultSort = UNSET


_decode_content = msgspec.json.Decoder(StatementContent).decode


class StatementRow(Struct, kw_only=True):
    """A stored statement. `content` is the JSON of a StatementContent."""

    id: UUID
    participant_id: UUID
    plan_id: UUID
    month: dt.date
    content: str
    made_at: AwareDatetime
    made_by: str | None
    updated_at: AwareDatetime
    run_id: UUID | None = None
    pdf_key: str | None = None
    pdf_sha256: str | None = None
    pdf_size: int | None = None
    sent: list[StatementSend] = []

    @property
    def statement(self) -> Statement:
        """The response. Its JSON is that which was stored, with `sent` and `updated_at`."""
        return Statement(**to_values(_decode_content(self.content)), sent=self.sent, updated_at=self.updated_at)

    @property
    def summary(self) -> StatementSummary:
        return StatementSummary(
            id=self.id,
            participant_id=self.participant_id,
            plan_id=self.plan_id,
            month=f"{self.month:%Y-%m}",
            sent=self.sent,
            created_at=self.made_at,
            created_by=self.made_by,
            updated_at=self.updated_at,
        )


def to_values(content: Struct) -> dict[str, Any]:
    """The fields of a struct, as arguments of another one."""
    return {name: getattr(content, name) for name in content.__struct_fields__}
