"""Random providers, and the support items that each type of provider sells, with prices."""

from decimal import Decimal
from random import Random
from typing import Literal, NamedTuple

from stdnum.au import abn

from plankeeper.cli.sample_data import addresses
from plankeeper.cli.sample_data.random_values import (
    Row,
    chance,
    days_ago,
    email_local_part,
    format_datetime,
    random_date,
    random_datetime,
    uuid7,
)

Unit = Literal["hour", "kilometre", "each", "month"]


class Item(NamedTuple):
    """A support item of an invoice line. `price` is in dollars per unit."""

    code: str
    description: str
    price: Decimal
    unit: Unit


class DemoProvider(NamedTuple):
    """A provider's row and its items. `charges_gst` says whether its invoices can include GST."""

    row: Row
    items: tuple[Item, ...]
    charges_gst: bool


def _item(code: str, description: str, price: str, unit: Unit = "hour") -> Item:
    return Item(code, description, Decimal(price), unit)


_PROVIDER_TYPES = {
    "Home Care": (
        _item("01_011_0107_1_1", "Self-care activities, standard, weekday daytime", "70.23"),
        _item("01_015_0107_1_1", "Self-care activities, standard, weekday evening", "77.38"),
        _item("01_013_0107_1_1", "Self-care activities, standard, Saturday", "98.83"),
        _item("01_014_0107_1_1", "Self-care activities, standard, Sunday", "127.43"),
        _item("01_799_0107_1_1", "Provider travel - non-labour costs, self-care", "1.00", "kilometre"),
    ),
    "Community Access": (
        _item("04_104_0125_6_1", "Community, social and recreational access, weekday daytime", "70.23"),
        _item("04_105_0125_6_1", "Community, social and recreational access, Saturday", "98.83"),
        _item("04_106_0125_6_1", "Community, social and recreational access, Sunday", "127.43"),
        _item("04_590_0125_6_1", "Activity-based transport", "1.00", "kilometre"),
    ),
    "Allied Health": (
        _item("15_617_0128_1_3", "Therapy and assessment, occupational therapist", "193.99"),
        _item("15_622_0128_1_3", "Therapy and assessment, speech pathologist", "193.99"),
        _item("15_055_0128_1_3", "Therapy and assessment, physiotherapist", "183.99"),
        _item("15_799_0128_1_3", "Written report on progress against goals", "385.00", "each"),
    ),
    "Psychology": (
        _item("15_054_0128_1_3", "Therapy and assessment, psychologist", "232.99"),
        _item("11_022_0110_7_3", "Specialist behavioural intervention support", "244.22"),
        _item("11_023_0110_7_3", "Behaviour management plan and training of carers", "244.22"),
    ),
    "Support Coordination": (
        _item("07_001_0106_8_3", "Support coordination, level 1, support connection", "80.90"),
        _item("07_002_0106_8_3", "Support coordination, level 2, coordination of supports", "100.14"),
        _item("07_101_0106_6_3", "Psychosocial recovery coaching, weekday daytime", "105.43"),
    ),
    "Mobility Supplies": (
        _item("03_090000911_0103_1_1", "Low-cost assistive technology, personal care", "64.90", "each"),
        _item("03_120000911_0105_1_1", "Low-cost assistive technology, personal mobility", "218.50", "each"),
        _item("03_220000911_0124_1_1", "Low-cost assistive technology, communication", "149.95", "each"),
    ),
    "House and Garden": (
        _item("01_019_0120_1_1", "House or yard maintenance", "57.64"),
        _item("01_020_0120_1_1", "House cleaning and other household activities", "58.70"),
        _item("01_022_0120_1_1", "Preparation and delivery of meals", "13.75", "each"),
    ),
    "Exercise Physiology": (
        _item("15_200_0126_1_3", "Exercise physiology", "166.99"),
        _item("15_201_0126_1_3", "Personal training within a wellbeing plan", "66.62"),
    ),
}
SOLD_ITEMS = tuple(item for items in _PROVIDER_TYPES.values() for item in items)
_WITH_GST = {"Mobility Supplies", "House and Garden"}
_PREFIXES = (
    "Brass Emu, Velvet Quokka, Copper Numbat, Teal Wombat, Paper Lyrebird, Lantern Gum, Clockwork Galah, Marble Bilby, "
    "Tin Cassowary, Amber Echidna, Plaid Platypus, Chalk Heron, Indigo Dingo, Walnut Possum, Satin Potoroo, "
    "Pewter Pelican, Saffron Skink, Velour Wallaby, Quartz Curlew, Denim Dugong, Cobalt Bandicoot, Ginger Goanna, "
    "Opal Kestrel, Linen Lorikeet"
)
_COMPANY_SUFFIXES = ("Pty Ltd", "Pty Ltd", "Pty Ltd", "Services", "Co-operative", "Group")


def generate_providers(rng: Random, count: int) -> list[DemoProvider]:
    """Generate `count` providers, at most 192, with different names, in order of creation.

    All ABNs have valid check digits, except one that is wrong on purpose. No range of ABNs is reserved for fiction:
    any match with a real business is coincidental.
    """
    known = _PREFIXES.split(", ")
    prefixes = rng.sample(known, len(known))
    # Types rotate, shifted by one in each round of prefixes, so that even a few providers include every type.
    types = list(_PROVIDER_TYPES)
    providers = [
        _provider(rng, prefixes[number % len(prefixes)], types[(number + number // len(prefixes)) % len(types)])
        for number in range(count)
    ]
    invalid_row = rng.choice(providers).row
    invalid_row["abn"] = invalid_row["abn"][:-1] + str((int(invalid_row["abn"][-1]) + 1) % 10)
    for provider in rng.sample(providers, max(1, count // 20)):
        provider.row["active"] = False
    return sorted(providers, key=lambda provider: provider.row["id"])


def _provider(rng: Random, prefix: str, provider_type: str) -> DemoProvider:
    address, digits = addresses.random_address(rng), f"{rng.randrange(10**9):09}"
    created_at = random_datetime(rng, random_date(rng, days_ago(1900), days_ago(420)))
    domain = email_local_part(f"{prefix} {provider_type}")
    row: Row = {
        "id": uuid7(rng, created_at),
        "entity_name": f"{prefix} {provider_type} {rng.choice(_COMPANY_SUFFIXES)}",
        "abn": abn.calc_check_digits(digits) + digits,
        "email": f"{rng.choice(('accounts', 'billing', 'office'))}@{domain}.example.org",
        "active": True,
        "primary_phone_number": addresses.random_landline(rng, address.state)
        if chance(rng, 75)
        else addresses.random_mobile(rng),
        "address": ", ".join(line for line in (address.line_2, address.line_1) if line),
        "city": address.city,
        "state": address.state,
        "postcode": address.postcode,
        "ndis_provider_number": f"405{rng.randrange(10**7):07}" if chance(rng, 60) else None,
        "created_at": format_datetime(created_at),
    }
    return DemoProvider(row, _PROVIDER_TYPES[provider_type], provider_type in _WITH_GST)
