"""Schemas of plans: components, funding periods, request bodies, queries and stored rows."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Annotated, Literal
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType, field

from plankeeper.core.fields import (
    EXTENSION,
    AwareDatetime,
    CreatedAt,
    ExternalId,
    ExternalIdText,
    NewId,
    Query,
    Text50,
    Text255,
    UpdatedAt,
    UuidText,
    component,
)
from plankeeper.core.lists import DefaultSort, ExternalIdFilter, ResourceListQuery

ComponentKind = Annotated[
    Literal["flexible", "stated"],
    component(
        "ComponentKind",
        "`flexible`: one sum for any support of its categories. `stated`: a sum that is only for its own categories.",
    ),
]
Category = Annotated[int, Meta(ge=1, le=99)]
Categories = Annotated[list[Category], Meta(max_length=99)]
Money = Decimal  # an exact JSON number, in dollars to the cent
ComponentName = Annotated[str, Meta(min_length=1, max_length=255)]
MAX_COMPONENTS, MAX_PERIODS = 100, 400  # a day has one plan, and a period is at least a day


class FundingPeriod(Struct, forbid_unknown_fields=True, kw_only=True):
    """The part of a component that becomes available on the first day of a period."""

    start_date: Annotated[date, Meta(description="The first day.")]
    end_date: Annotated[date, Meta(description="The last day.")]
    amount: Annotated[Money, Meta(description="In dollars.")]


class SpentElsewhere(Struct, forbid_unknown_fields=True, kw_only=True):
    """What others have claimed of a component, for a participant who joined in the middle of a plan."""

    amount: Annotated[Money, Meta(description="In dollars.")]
    as_of: Annotated[date, Meta(description="The day of the information.")]
    source: Annotated[Text255 | None, Meta(description="Where the information comes from, or null.")] = None


class PlanComponent(Struct, kw_only=True):
    """A part of a plan's budget."""

    id: Annotated[UUID, Meta(description="The component's UUID. Lines of invoices can name it.")]
    name: Annotated[str, Meta(description="The name to display.")]
    kind: Annotated[ComponentKind, Meta(description="`flexible` or `stated`.")]
    categories: Annotated[list[int], Meta(description="The numbers of its support categories.")]
    amount: Annotated[Money, Meta(description="The part that the plan manager manages, in dollars.")]
    periods: Annotated[
        list[FundingPeriod], Meta(description="The funding periods, which add up to `amount`; empty without periods.")
    ]
    spent_elsewhere: Annotated[SpentElsewhere | None, Meta(description="What others have claimed of it, or null.")]
    released: Annotated[
        Money | UnsetType,
        Meta(description="The amounts of the periods that have begun; without periods, `amount`. Absent in events."),
    ] = UNSET
    paid: Annotated[
        Money | UnsetType, Meta(description="What the agency has paid, and `spent_elsewhere`. Absent in events.")
    ] = UNSET
    pending: Annotated[
        Money | UnsetType, Meta(description="What is claimed and has no result yet. Absent in events.")
    ] = UNSET
    waiting: Annotated[Money | UnsetType, Meta(description="What isn't claimed yet. Absent in events.")] = UNSET
    available: Annotated[
        Money | UnsetType, Meta(description="`released` less `paid`, `pending` and `waiting`. Absent in events.")
    ] = UNSET


class PlanRow(Struct, kw_only=True):
    """A stored plan. Imports and exports use the same shape."""

    id: Annotated[UUID, Meta(description="The plan's UUID.")]
    participant_id: Annotated[UUID, Meta(description="The participant's UUID.")]
    start_date: Annotated[
        date | None, Meta(description="The first day. Null only if it was set as a field of the participant.")
    ] = None
    end_date: Annotated[
        date | None, Meta(description="The last day. Null only if it was set as a field of the participant.")
    ] = None
    is_pace_plan: Annotated[bool, Meta(description="Whether it is a PACE plan.")] = False
    external_id: ExternalId = None
    components: Annotated[list[PlanComponent], Meta(description="The parts of its budget, with their numbers.")] = []
    created_at: CreatedAt = field(default_factory=lambda: datetime.now(UTC))


class Plan(PlanRow, kw_only=True):
    """A plan of a participant. At most one plan is in force on a day."""

    updated_at: UpdatedAt = field(default_factory=lambda: datetime.now(UTC))


# Of a response, so that a client can send back what it received.
_IGNORED = Meta(description="Ignored: the server computes it.", extra_json_schema={"readOnly": True})


class PlanComponentChange(Struct, forbid_unknown_fields=True, kw_only=True):
    """A new component or, with an id, the changes of one. A new one requires a name, a kind, categories, an amount."""

    id: Annotated[
        UuidText | UnsetType, Meta(description="The component to update. Without an id, it is a new one.")
    ] = UNSET
    name: ComponentName | UnsetType = UNSET
    kind: ComponentKind | UnsetType = UNSET
    categories: Categories | UnsetType = UNSET
    amount: Money | UnsetType = UNSET
    periods: Annotated[list[FundingPeriod], Meta(max_length=MAX_PERIODS)] | UnsetType = UNSET
    spent_elsewhere: SpentElsewhere | None | UnsetType = UNSET
    released: Annotated[Money | UnsetType, _IGNORED] = UNSET
    paid: Annotated[Money | UnsetType, _IGNORED] = UNSET
    pending: Annotated[Money | UnsetType, _IGNORED] = UNSET
    waiting: Annotated[Money | UnsetType, _IGNORED] = UNSET
    available: Annotated[Money | UnsetType, _IGNORED] = UNSET


_COMPONENTS = Meta(
    max_length=MAX_COMPONENTS,
    description="All components: one with an id is updated, one without is created, one that is absent is removed.",
)


class PlanCreate(Struct, forbid_unknown_fields=True, kw_only=True):
    """A new plan."""

    start_date: Annotated[date, EXTENSION]
    end_date: Annotated[date, EXTENSION]
    is_pace_plan: Annotated[bool | UnsetType, EXTENSION] = UNSET
    external_id: Annotated[ExternalIdText | None | UnsetType, EXTENSION] = UNSET
    components: Annotated[Annotated[list[PlanComponentChange], _COMPONENTS] | UnsetType, EXTENSION] = UNSET


class PlanUpdate(Struct, forbid_unknown_fields=True, kw_only=True):
    """The changes of a plan. Omitted fields keep their values; null clears a value."""

    start_date: Annotated[date | UnsetType, EXTENSION] = UNSET
    end_date: Annotated[date | UnsetType, EXTENSION] = UNSET
    is_pace_plan: Annotated[bool | UnsetType, EXTENSION] = UNSET
    external_id: Annotated[ExternalIdText | None | UnsetType, EXTENSION] = UNSET
    components: Annotated[Annotated[list[PlanComponentChange], _COMPONENTS] | UnsetType, EXTENSION] = UNSET


class PlanImport(Struct, forbid_unknown_fields=True, kw_only=True):
    """A record of an import. It identifies the participant by id or by number."""

    id: NewId | UnsetType = UNSET
    participant_id: UuidText | UnsetType = UNSET
    participant_number: Text50 | UnsetType = UNSET
    start_date: date | None | UnsetType = UNSET
    end_date: date | None | UnsetType = UNSET
    is_pace_plan: bool | UnsetType = UNSET
    external_id: ExternalIdText | None | UnsetType = UNSET
    components: Annotated[list[PlanComponentChange], Meta(max_length=MAX_COMPONENTS)] | UnsetType = UNSET
    created_at: AwareDatetime | UnsetType = UNSET


_On = Annotated[date | UnsetType, EXTENSION, Meta(description="The day of the numbers. Default: today.")]


class PlanQuery(Query, frozen=True):
    """The day of the numbers."""

    on: _On = UNSET


class PlanListQuery(ResourceListQuery, frozen=True):
    """The query of the list."""

    sort: DefaultSort = UNSET
    external_id: ExternalIdFilter = UNSET
    on: _On = UNSET


class LineSum(Struct, frozen=True, kw_only=True):
    """Lines of a participant's invoices that count for the same component and are in the same state.

    `service_date` is the first day of a service, or the invoice's date. `amount` is in dollars with tax, null for
    lines without a price. `paid` is what the agency has paid, null before a result. `pending` is the amount of the open
    claims of pending lines, null if they have none here. `is_rest_waiting`: the unpaid rest is for the next claim
    batch. The categories are those of the
    support catalogue on the service date, null for an item that it doesn't have.
    """

    participant_id: UUID
    service_date: date | None
    service_item_number: str | None
    component_id: UUID | None
    claim_status: str
    wont_claim: bool
    amount: Decimal | None
    paid: Decimal | None
    category: int | None = None
    pace_category: int | None = None
    pending: Decimal | None = None
    is_rest_waiting: bool = False


class ServiceLine(LineSum, frozen=True, kw_only=True):
    """A line of an invoice of a participant, as far as budgets use it."""

    invoice_id: UUID
    id: UUID
    received_at: datetime
    position: int
