"""The sample catalogue: it has the items of the sample invoices, with limits that are above their prices."""

from datetime import date
from decimal import Decimal
from itertools import pairwise

from plankeeper.cli.sample_data.providers import SOLD_ITEMS
from plankeeper.cli.sample_data.support_items import generate_support_items
from plankeeper.imports.support_catalogue import read_catalogue, write_catalogue
from plankeeper.resources.support_items.rules import is_in_force, price_limit

DAY = date(2026, 10, 30)


def test_what_providers_sell_is_in_force_and_costs_less_than_its_limit_also_with_gst() -> None:
    items = generate_support_items(DAY)
    for day in (date(2023, 1, 1), date(2026, 6, 30), date(2026, 7, 1), DAY):
        in_force = {each.support_item_number: each for each in items if is_in_force(each, day)}
        assert len(in_force) == 40
        for sold in SOLD_ITEMS:
            limit = price_limit(in_force[sold.code], None, None)
            assert limit is None if sold.unit == "kilometre" else limit and limit > sold.price * Decimal("1.1")


def test_periods_follow_each_other_and_the_catalogue_can_be_imported() -> None:
    items = generate_support_items(DAY)
    for one, other in pairwise(items):
        if one.support_item_number == other.support_item_number:
            assert one.end_date
            assert (other.start_date - one.end_date).days == 1
    assert read_catalogue(write_catalogue(items).encode()).items == items
