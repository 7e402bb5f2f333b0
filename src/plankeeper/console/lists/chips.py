"""The filters that are set, for lists that read their rows in a way of their own: the activity and the requests."""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import NamedTuple

from plankeeper.console.lists.dates import PAST_PRESETS
from plankeeper.console.lists.page import Chip, Tab
from plankeeper.console.pagination import with_query


class ChipBar(NamedTuple):
    """What the macro `chips` shows: a chip for each filter, and the list without any."""

    chips: Sequence[Chip]
    clear_url: str


def chip_bar(url: str, params: Mapping[str, str], texts: Mapping[str, str]) -> ChipBar:
    """The chips of a list at `url`. `texts` has each filter in words, by the parameter that sets it."""
    return ChipBar([Chip(text, with_query(url, without(params, name))) for name, text in texts.items()], url)


def without(params: Mapping[str, str], *names: str) -> dict[str, str]:
    """The parameters without some of them."""
    return {name: text for name, text in params.items() if name not in names}


def preset_links(url: str, params: Mapping[str, str], today: date) -> list[Tab]:
    """The presets of the parameters `from` and `to`, as links."""
    links = list[Tab]()
    for preset in PAST_PRESETS.values():
        days = preset.range_of(today)
        chosen = {name: day.isoformat() for name, day in (("from", days.first), ("to", days.last)) if day}
        is_current = all(params.get(name) == text for name, text in chosen.items())
        links.append(Tab(preset.label, with_query(url, without(params, "from", "to") | chosen), is_current))
    return links
