"""Providers, and what each kind of provider sells: support items with their prices."""

from decimal import Decimal
from random import Random
from typing import Literal, NamedTuple

from stdnum.au import abn

from plankeeper.demo import addresses
from plankeeper.demo.random_values import Row, address_name, chance, day_between, days_before, moment, stamp, uuid7


class Item(NamedTuple):
    """A support item as invoices name it. `price` is in dollars for one hour, one kilometre or one piece."""

    code: str
    description: str
    price: Decimal
    unit: Literal["hour", "kilometre", "each"]


class Business(NamedTuple):
    """A provider's row with what it sells; `taxed` says whether its invoices can carry GST."""

    row: Row
    items: tuple[Item, ...]
    taxed: bool


class _Kind(NamedTuple):
    suffix: str
    items: tuple[Item, ...]
    taxed: bool = False


def _hourly(code: str, description: str, price: str) -> Item:
    return Item(code, description, Decimal(price), "hour")


def _each(code: str, description: str, price: str) -> Item:
    return Item(code, description, Decimal(price), "each")


_TRAVEL = Item("01_799_0107_1_1", "Provider travel - non-labour costs, self-care", Decimal("1.00"), "kilometre")
_KINDS = (
    _Kind(
        "Home Care",
        (
            _hourly("01_011_0107_1_1", "Self-care activities, standard, weekday daytime", "70.23"),
            _hourly("01_015_0107_1_1", "Self-care activities, standard, weekday evening", "77.38"),
            _hourly("01_013_0107_1_1", "Self-care activities, standard, Saturday", "98.83"),
            _hourly("01_014_0107_1_1", "Self-care activities, standard, Sunday", "127.43"),
            _TRAVEL,
        ),
    ),
    _Kind(
        "Community Access",
        (
            _hourly("04_104_0125_6_1", "Community, social and recreational access, weekday daytime", "70.23"),
            _hourly("04_105_0125_6_1", "Community, social and recreational access, Saturday", "98.83"),
            _hourly("04_106_0125_6_1", "Community, social and recreational access, Sunday", "127.43"),
            Item("04_590_0125_6_1", "Activity-based transport", Decimal("1.00"), "kilometre"),
        ),
    ),
    _Kind(
        "Allied Health",
        (
            _hourly("15_617_0128_1_3", "Therapy and assessment, occupational therapist", "193.99"),
            _hourly("15_622_0128_1_3", "Therapy and assessment, speech pathologist", "193.99"),
            _hourly("15_055_0128_1_3", "Therapy and assessment, physiotherapist", "183.99"),
            _each("15_799_0128_1_3", "Written report on progress against goals", "385.00"),
        ),
    ),
    _Kind(
        "Psychology",
        (
            _hourly("15_054_0128_1_3", "Therapy and assessment, psychologist", "232.99"),
            _hourly("11_022_0110_7_3", "Specialist behavioural intervention support", "244.22"),
            _hourly("11_023_0110_7_3", "Behaviour management plan and training of carers", "244.22"),
        ),
    ),
    _Kind(
        "Support Coordination",
        (
            _hourly("07_001_0106_8_3", "Support coordination, level 1, support connection", "80.90"),
            _hourly("07_002_0106_8_3", "Support coordination, level 2, coordination of supports", "100.14"),
            _hourly("07_101_0106_6_3", "Psychosocial recovery coaching, weekday daytime", "105.43"),
        ),
    ),
    _Kind(
        "Mobility Supplies",
        (
            _each("03_090000911_0103_1_1", "Low-cost assistive technology, personal care", "64.90"),
            _each("03_120000911_0105_1_1", "Low-cost assistive technology, personal mobility", "218.50"),
            _each("03_220000911_0124_1_1", "Low-cost assistive technology, communication", "149.95"),
        ),
        taxed=True,
    ),
    _Kind(
        "House and Garden",
        (
            _hourly("01_019_0120_1_1", "House or yard maintenance", "57.64"),
            _hourly("01_020_0120_1_1", "House cleaning and other household activities", "58.70"),
            _each("01_022_0120_1_1", "Preparation and delivery of meals", "13.75"),
        ),
        taxed=True,
    ),
    _Kind(
        "Exercise Physiology",
        (
            _hourly("15_200_0126_1_3", "Exercise physiology", "166.99"),
            _hourly("15_201_0126_1_3", "Personal training within a wellbeing plan", "66.62"),
        ),
    ),
)
_PREFIXES = (
    "Brass Emu", "Velvet Quokka", "Copper Numbat", "Teal Wombat", "Paper Lyrebird", "Lantern Gum",
    "Clockwork Galah", "Marble Bilby", "Tin Cassowary", "Amber Echidna", "Plaid Platypus", "Chalk Heron",
    "Indigo Dingo", "Walnut Possum", "Satin Potoroo", "Pewter Pelican", "Saffron Skink", "Velour Wallaby",
    "Quartz Curlew", "Denim Dugong", "Cobalt Bandicoot", "Ginger Goanna", "Opal Kestrel", "Linen Lorikeet",
)  # fmt: skip
_FORMS = ("Pty Ltd", "Pty Ltd", "Pty Ltd", "Services", "Co-operative", "Group")


def businesses(rng: Random, count: int) -> list[Business]:
    """Give `count` providers, 192 at most, in the order of their creation; no two have one name.

    The check digits of every ABN hold, except in one that is wrong on purpose. No range of ABNs is reserved
    for fiction: one that some real business has is chance.
    """
    prefixes = rng.sample(_PREFIXES, len(_PREFIXES))
    # Each kind in turn, a step on in each round of prefixes: so even a few providers are of every kind.
    made = [
        _business(rng, prefixes[number % len(prefixes)], _KINDS[(number + number // len(prefixes)) % len(_KINDS)])
        for number in range(count)
    ]
    wrong = rng.choice(made).row
    wrong["abn"] = wrong["abn"][:-1] + str((int(wrong["abn"][-1]) + 1) % 10)
    for business in rng.sample(made, max(1, count // 20)):
        business.row["active"] = False
    return sorted(made, key=lambda business: business.row["id"])


def _business(rng: Random, prefix: str, kind: _Kind) -> Business:
    office, digits = addresses.address(rng), f"{rng.randrange(10**9):09}"
    when = moment(rng, day_between(rng, days_before(1900), days_before(420)))
    domain = address_name(f"{prefix} {kind.suffix}")
    row: Row = {
        "id": uuid7(rng, when),
        "entity_name": f"{prefix} {kind.suffix} {rng.choice(_FORMS)}",
        "abn": abn.calc_check_digits(digits) + digits,
        "email": f"{rng.choice(('accounts', 'billing', 'office'))}@{domain}.example.org",
        "active": True,
        "primary_phone_number": addresses.landline(rng, office.state) if chance(rng, 75) else addresses.mobile(rng),
        "address": ", ".join(line for line in (office.line_2, office.line_1) if line),
        "city": office.city,
        "state": office.state,
        "postcode": office.postcode,
        "ndis_provider_number": f"405{rng.randrange(10**7):07}" if chance(rng, 60) else None,
        "created_at": stamp(when),
    }
    return Business(row, kind.items, kind.taxed)
