"""The groups of a list, read from its page."""

import re
from decimal import Decimal
from html import unescape
from typing import NamedTuple


class ReadGroup(NamedTuple):
    """A row of the table of groups; `url` is empty for a group without a link."""

    count: int
    sums: list[Decimal]
    url: str


def read_groups(html: str) -> dict[str, ReadGroup]:
    """The rows of the table by their names, with the total."""
    table = html[html.index('<table class="grid groups">') :]
    found = dict[str, ReadGroup]()
    for row in re.findall(r'<tr[^>]*><th scope="row">(.*?)</tr>', table, re.DOTALL):
        head, *cells = re.split(r"</th><td[^>]*>|</td><td[^>]*>", row.removesuffix("</td>"))
        count, *sums = (re.sub(r"[$,\s]", "", unescape(re.sub(r"<[^>]+>", "", each))) for each in cells)
        link = re.search(r'href="([^"]+)"', head)
        amounts = [Decimal(each.replace("−", "-")) for each in sums]
        name = unescape(re.sub(r"<[^>]+>", "", head))
        found[name] = ReadGroup(int(count), amounts, unescape(link[1]) if link else "")
    return found
