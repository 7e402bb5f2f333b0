"""The configuration of docs/operations, changed for one machine: loopback addresses and free ports."""

import re
from functools import cache

from support import ports
from support.pages import blocks

PORTS = (2379, 2380, 5000, 5432, 8008)  # the documented ones: two of etcd, HAProxy, PostgreSQL, Patroni


def documented_file(language: str, text: str) -> str:
    """The block of the pages about installation and clusters that contains a text."""
    pages = ("docs/operations/install.md", "docs/operations/clusters.md")
    [found] = [each.text for page in pages for each in blocks(page) if each.language == language and text in each.text]
    return found + "\n"


@cache
def free_ports() -> dict[int, int]:
    """A port that is free on all addresses for each documented one."""
    return dict(zip(PORTS, ports.free_ports(len(PORTS)), strict=True))


def on_loopback(text: str) -> str:
    """Loopback addresses instead of the documented network, and free ports instead of the documented ones."""
    text = text.replace("10.0.0.", "127.0.0.")
    return re.sub(r"\b\d{4}\b", lambda match: str(free_ports().get(int(match[0]), match[0])), text)
