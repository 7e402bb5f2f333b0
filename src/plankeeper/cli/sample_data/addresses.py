"""Random addresses: real suburbs and postcodes, fictitious streets, and telephone numbers reserved for fiction."""

from random import Random
from typing import NamedTuple

from plankeeper.cli.sample_data.random_values import chance


class Address(NamedTuple):
    """An address. `region` is "remote", "very_remote" or None."""

    line_1: str
    line_2: str | None
    city: str
    state: str
    postcode: str
    region: str | None


_SUBURBS = {
    "NSW": (
        "Parramatta 2150, Newtown 2042, Bankstown 2200, Penrith 2750, Liverpool 2170, Wollongong 2500, Newcastle 2300, "
        "Orange 2800, Dubbo 2830, Tamworth 2340, Wagga Wagga 2650, Albury 2640, Coffs Harbour 2450, Lismore 2480, "
        "Bathurst 2795, Hornsby 2077, Cabramatta 2166, Blacktown 2148, Gosford 2250, Goulburn 2580"
    ),
    "VIC": (
        "Footscray 3011, Dandenong 3175, Geelong 3220, Ballarat Central 3350, Bendigo 3550, Shepparton 3630, "
        "Mildura 3500, Frankston 3199, Box Hill 3128, Preston 3072, Brunswick 3056, Werribee 3030, Sunshine 3020, "
        "Traralgon 3844, Warrnambool 3280, Wodonga 3690"
    ),
    "QLD": (
        "Toowoomba City 4350, Ipswich 4305, Cairns City 4870, Townsville City 4810, Mackay 4740, "
        "Rockhampton City 4700, Southport 4215, Caboolture 4510, Logan Central 4114, Chermside 4032, "
        "Maroochydore 4558, Inala 4077, Sunnybank 4109, Mount Isa 4825, Thursday Island 4875"
    ),
    "WA": (
        "Fremantle 6160, Joondalup 6027, Rockingham 6168, Mandurah 6210, Bunbury 6230, Albany 6330, Geraldton 6530, "
        "Midland 6056, Armadale 6112, Cannington 6107, Broome 6725, Halls Creek 6770"
    ),
    "SA": (
        "Salisbury 5108, Elizabeth 5112, Glenelg 5045, Mount Gambier 5290, Whyalla 5600, Murray Bridge 5253, "
        "Prospect 5082, Norwood 5067, Modbury 5092, Port Lincoln 5606, Coober Pedy 5723"
    ),
    "TAS": "Hobart 7000, Launceston 7250, Devonport 7310, Burnie 7320, Glenorchy 7010, Kingston 7050, Ulverstone 7315",
    "ACT": "Belconnen 2617, Greenway 2900, Braddon 2612, Dickson 2602, Gungahlin 2912, Kambah 2902, Phillip 2606",
    "NT": (
        "Darwin City 0800, Casuarina 0810, Palmerston City 0830, Katherine 0850, Alice Springs 0870, Tennant Creek 0860"
    ),
}
SUBURBS = {state: tuple((each[:-5], each[-4:]) for each in text.split(", ")) for state, text in _SUBURBS.items()}
"""Suburbs by state, each with its postcode."""

SERVICE_REGIONS: dict[str, str] = {
    **dict.fromkeys(("0850", "0870", "4825", "6725"), "remote"),
    **dict.fromkeys(("0860", "4875", "5723", "6770"), "very_remote"),
}
"""Service regions by postcode. Other postcodes have none."""

_STATE_WEIGHTS = {"NSW": 31, "VIC": 26, "QLD": 20, "WA": 9, "SA": 8, "TAS": 3, "ACT": 2, "NT": 3}
_STREETS = (
    "Bottlebrush Street, Jacaranda Avenue, Station Road, Lorikeet Lane, Federation Parade, Ironbark Crescent, "
    "Old Mill Road, Waratah Street, Pelican Close, Lighthouse Drive, Silky Oak Court, Coronation Street, Magpie Way, "
    "Grevillea Place, Riverbend Road, Kookaburra Circuit, Railway Terrace, Flame Tree Grove, Showground Road, "
    "Banksia Street"
)
# Reserved for use in fiction by the Australian Communications and Media Authority.
_MOBILE_SUFFIXES = (
    "570 006, 570 156, 570 157, 570 158, 570 159, 570 110, 571 266, 571 491, 571 804, 572 549, 572 665, 572 983, "
    "573 770, 573 087, 574 118, 574 632, 575 254, 575 789, 576 398, 576 801, 577 426, 577 644, 578 957, 578 148, "
    "578 888"
)
_AREA_CODES = {"NSW": "02", "ACT": "02", "VIC": "03", "TAS": "03", "QLD": "07", "WA": "08", "SA": "08", "NT": "08"}


def random_address(rng: Random) -> Address:
    state = rng.choices(tuple(_STATE_WEIGHTS), tuple(_STATE_WEIGHTS.values()))[0]
    city, postcode = rng.choice(SUBURBS[state])
    line_2 = f"Unit {rng.randint(1, 24)}" if chance(rng, 15) else None
    line_1 = f"{rng.randint(1, 240)} {rng.choice(_STREETS.split(', '))}"
    return Address(line_1, line_2, city, state, postcode, SERVICE_REGIONS.get(postcode))


def random_mobile(rng: Random) -> str:
    return f"0491 {rng.choice(_MOBILE_SUFFIXES.split(', '))}"


def random_landline(rng: Random, state: str) -> str:
    return f"({_AREA_CODES[state]}) 5550 {rng.randrange(10_000):04}"
