"""Schemas of the support catalogue: its items, which are also its rows, and their list."""

from datetime import date, datetime
from decimal import Decimal
from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from plankeeper.core.fields import EXTENSION, SearchText
from plankeeper.core.lists import ListQuery

MAX_NUMBER_LENGTH = 60

PriceLimit = Decimal | UnsetType  # an exact JSON number

PRICE_NAMES = {
    "act": "ACT",
    "nsw": "NSW",
    "nt": "NT",
    "qld": "QLD",
    "sa": "SA",
    "tas": "TAS",
    "vic": "VIC",
    "wa": "WA",
    "remote": "Remote",
    "very_remote": "Very Remote",
    "national": "National",
}


class PriceLimits(Struct, frozen=True, rename=PRICE_NAMES):
    """The prices of a unit by the place of the support. Absent: the catalogue has no such price."""

    act: Annotated[PriceLimit, Meta(description="The price in the Australian Capital Territory, in dollars.")] = UNSET
    nsw: Annotated[PriceLimit, Meta(description="The price in New South Wales, in dollars.")] = UNSET
    nt: Annotated[PriceLimit, Meta(description="The price in the Northern Territory, in dollars.")] = UNSET
    qld: Annotated[PriceLimit, Meta(description="The price in Queensland, in dollars.")] = UNSET
    sa: Annotated[PriceLimit, Meta(description="The price in South Australia, in dollars.")] = UNSET
    tas: Annotated[PriceLimit, Meta(description="The price in Tasmania, in dollars.")] = UNSET
    vic: Annotated[PriceLimit, Meta(description="The price in Victoria, in dollars.")] = UNSET
    wa: Annotated[PriceLimit, Meta(description="The price in Western Australia, in dollars.")] = UNSET
    remote: Annotated[PriceLimit, Meta(description="The price in remote areas of any state, in dollars.")] = UNSET
    very_remote: Annotated[PriceLimit, Meta(description="The price in very remote areas of any state, in dollars.")] = (
        UNSET
    )
    national: Annotated[
        PriceLimit, Meta(description="The price in all states, except in remote areas, in dollars.")
    ] = UNSET


class PricedItem(Struct, frozen=True):
    """What decides the support category and the price limit of an item."""

    category: int
    pace_category: int | None
    has_price_limit: bool
    price_limits: PriceLimits | None


class SupportItem(Struct, frozen=True, kw_only=True):
    """An item of the support catalogue, as it is from a day on."""

    support_item_number: Annotated[str, Meta(description="The number, such as `15_056_0128_1_3`.")]
    start_date: Annotated[date, Meta(description="The first day on which this version is in force.")]
    end_date: Annotated[date | None, Meta(description="The last day; null for an open end.")] = None
    name: Annotated[str, Meta(description="The name of the support.")]
    registration_group_number: Annotated[
        str | None, Meta(description="The registration group, such as `0128`, or null.")
    ] = None
    registration_group_name: Annotated[str | None, Meta(description="The name of the registration group, or null.")] = (
        None
    )
    category: Annotated[int, Meta(description="The support category of plans of the former system.")]
    pace_category: Annotated[int | None, Meta(description="The support category of PACE plans, or null.")] = None
    category_name: Annotated[str | None, Meta(description="The name of `category`, or null.")] = None
    pace_category_name: Annotated[str | None, Meta(description="The name of `pace_category`, or null.")] = None
    unit: Annotated[
        str | None,
        Meta(description="`E` each, `H` hour, `D` day, `WK` week, `MON` month, `YR` year, another text, or null."),
    ] = None
    is_quote_required: Annotated[bool, Meta(description="Whether the support requires a quote.")] = False
    type: Annotated[str | None, Meta(description="The type, such as `Price Limited Supports`, or null.")] = None
    has_price_limit: Annotated[
        bool, Meta(description="Whether prices are limited, as they are for the type `Price Limited Supports` only.")
    ] = False
    price_limits: Annotated[
        PriceLimits | None, Meta(description="The prices that the catalogue states, in dollars, or null.")
    ] = None
    allows_non_face_to_face: Annotated[
        bool, Meta(description="Whether support that isn't face to face can be claimed.")
    ] = False
    allows_provider_travel: Annotated[bool, Meta(description="Whether the provider's travel can be claimed.")] = False
    allows_short_notice_cancellations: Annotated[
        bool, Meta(description="Whether cancellations at short notice can be claimed.")
    ] = False
    allows_ndia_requested_reports: Annotated[
        bool, Meta(description="Whether reports that the agency requested can be claimed.")
    ] = False
    allows_irregular_sil: Annotated[
        bool, Meta(description="Whether irregular supported independent living can be claimed.")
    ] = False


class SupportCatalogue(Struct, frozen=True):
    """The state of the catalogue. `revision` is 0 before the first import, and increases with each change."""

    revision: int
    imported_at: datetime | None


class SupportItemListQuery(ListQuery, frozen=True):
    """The query of the list, whose items are in order of their numbers."""

    after: Annotated[
        Annotated[str, Meta(min_length=1, max_length=MAX_NUMBER_LENGTH)] | UnsetType,
        Meta(
            description="Returns the items after this number, in ascending order. `0` starts at the beginning. Not"
            " allowed with `offset`."
        ),
    ] = UNSET
    q: Annotated[
        SearchText | UnsetType,
        EXTENSION,
        Meta(description="Returns items whose number and name contain each of these words, in either case."),
    ] = UNSET
    on: Annotated[
        date | UnsetType, EXTENSION, Meta(description="Returns the items in force on this day. Default: today.")
    ] = UNSET
    category: Annotated[
        Annotated[int, Meta(ge=1, le=99)] | UnsetType,
        EXTENSION,
        Meta(description="Returns items with this support category, of either kind of plan."),
    ] = UNSET

    @property
    def start(self) -> str:
        return "" if self.after in (UNSET, "0") else str(self.after)
