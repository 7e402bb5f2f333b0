"""An invented support catalogue, with the items that the sample providers sell and some others.

Numbers, names and prices are invented. Price limits are higher than what the sample invoices charge, also with GST.
"""

from collections.abc import Iterator
from datetime import date, timedelta
from decimal import ROUND_UP, Decimal

from plankeeper.cli.sample_data.providers import SOLD_ITEMS, Item
from plankeeper.core.formatting import CENT
from plankeeper.resources.support_items.rules import PRICE_LIMITED
from plankeeper.resources.support_items.schemas import PriceLimits, SupportItem

_CATEGORIES = {
    1: "Help at Home",
    2: "Getting Around",
    3: "Everyday Products",
    4: "Out and About",
    5: "Equipment",
    6: "Changes to the Home",
    7: "Coordination",
    8: "Moving House",
    11: "Positive Relationships",
    12: "Sport and Health",
    14: "Plan Management",
    15: "Daily Skills",
    21: "Calm Surroundings",
}
_PACE_CATEGORIES = {11: 21}  # those that PACE plans number differently
_UNITS = {"hour": "H", "kilometre": "E", "each": "E", "month": "MON"}
FEE_ITEM = Item("14_034_0127_8_3", "Plan management, monthly fee", Decimal("88.00"), "month")
"""The item of the office's own fee."""
_OTHER_ITEMS = (
    Item("01_003_0107_1_1", "Self-care activities, short visit, weekday daytime", Decimal("41.50"), "each"),
    Item("01_016_0104_1_1", "Self-care activities, complex, weekday daytime", Decimal("75.94"), "hour"),
    Item("01_018_0104_1_1", "Self-care activities, complex, public holiday", Decimal("168.50"), "hour"),
    Item("02_050_0108_1_1", "Specialised transport to school or work", Decimal("38.00"), "each"),
    Item("04_111_0136_6_1", "Group activities, one worker for three people", Decimal("26.15"), "hour"),
    Item("04_210_0125_6_1", "Evening outing with a support worker", Decimal("77.38"), "hour"),
    Item("05_121203811_0123_1_2", "Folding walking frame with a seat", Decimal("410.00"), "each"),
    Item("06_182490881_0111_2_2", "Handrails, supplied and fitted", Decimal("1321.77"), "each"),
    Item("08_005_0106_2_3", "Help with finding a new home", Decimal("74.63"), "hour"),
    Item("12_027_0126_3_3", "Exercise programme in the water", Decimal("66.62"), "hour"),
    FEE_ITEM,
    Item("15_045_0128_1_3", "Therapy and assessment, counsellor", Decimal("156.16"), "hour"),
    Item("15_062_0128_1_3", "Therapy and assessment, dietitian", Decimal("188.99"), "hour"),
)
_QUOTED = {"06_182490881_0111_2_2", "05_121203811_0123_1_2"}
_REMOTE, _VERY_REMOTE = Decimal("1.4"), Decimal("1.5")
# How far the limit of a period is above the charged price.
_MARGINS = (Decimal("1.12"), Decimal("1.15"))


def generate_support_items(today: date) -> list[SupportItem]:
    """The items in order of their numbers, each with the prices of some years until 30 June, and since then."""
    year = today.year if today.month > 6 else today.year - 1
    start = date(year, 7, 1)
    periods = ((date(year - 4, 7, 1), start - timedelta(days=1)), (start, None))
    items = sorted({each.code: each for each in (*SOLD_ITEMS, *_OTHER_ITEMS)}.values())
    return [each for item in items for each in _periods_of(item, periods)]


def _periods_of(item: Item, periods: tuple[tuple[date, date | None], ...]) -> Iterator[SupportItem]:
    category, group = int(item.code[:2]), item.code.split("_")[2]
    pace_category = _PACE_CATEGORIES.get(category, category)
    is_travel, is_quoted = item.unit == "kilometre", item.code in _QUOTED
    type_ = "Unit Price = $1" if is_travel else "Quotable Supports" if is_quoted else PRICE_LIMITED
    for (start, end), margin in zip(periods, _MARGINS, strict=True):
        yield SupportItem(
            support_item_number=item.code,
            start_date=start,
            end_date=end,
            name=item.description,
            registration_group_number=group,
            registration_group_name=f"Sample group {group}",
            category=category,
            pace_category=pace_category,
            category_name=_CATEGORIES[category],
            pace_category_name=_CATEGORIES[pace_category],
            unit=_UNITS[item.unit],
            is_quote_required=is_quoted,
            type=type_,
            has_price_limit=type_ == PRICE_LIMITED,
            price_limits=_limits(item.price * margin) if type_ == PRICE_LIMITED else None,
            allows_non_face_to_face=item.unit == "hour",
            allows_provider_travel=item.unit == "hour",
            allows_short_notice_cancellations=item.unit == "hour",
            allows_ndia_requested_reports=category == 15,
        )


def _limits(amount: Decimal) -> PriceLimits:
    by_state = dict.fromkeys(("act", "nsw", "nt", "qld", "sa", "tas", "vic", "wa"), amount)
    by_place = by_state | {"remote": amount * _REMOTE, "very_remote": amount * _VERY_REMOTE}
    return PriceLimits(**{place: each.quantize(CENT, ROUND_UP) for place, each in by_place.items()})
