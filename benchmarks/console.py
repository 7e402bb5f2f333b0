"""Measures the response time and size of each console page with many participants: `python -m benchmarks.console`.

The plan manager contains many copies of the sample data, under different ids. Pages are discovered by following links.
The times are those of complete requests over one connection on this machine, so slightly more than the server's time.
It is a program of its own because it needs httpx, which is a development dependency.
"""

import argparse
import re
import shutil
import statistics
import sys
import time
from dataclasses import dataclass
from html import unescape
from itertools import count
from pathlib import Path
from typing import get_type_hints

import httpx

from benchmarks.demo_server import DemoServer
from benchmarks.markdown import markdown_table
from benchmarks.processes import ProgramError
from plankeeper.console.application import page_routes
from plankeeper.console.shell.routing import Download

RESOURCES = ("participants", "providers", "team-members", "invoices", "invoice-view-sessions")
WARM_UP_REQUESTS, TIMED_REQUESTS = 5, 40  # requests per page


@dataclass(frozen=True)
class Options:
    work: Path
    participants: int
    fresh: bool


@dataclass(frozen=True)
class PageTiming:
    """A page: milliseconds of its requests, kilobytes of the page alone and with its assets."""

    path: str
    median: float
    slowest: float
    kb: float
    kb_with_assets: float


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.console", description="Measure every console page.")
    parser.add_argument("--work", type=Path, default=Path(".bench"), help="the folder for the data (.bench)")
    parser.add_argument("--participants", type=int, default=100_000, help="participants of the plan manager (100000)")
    parser.add_argument("--fresh", action="store_true", help="reload all data")
    args = parser.parse_args()
    try:
        measure_console(Options(work=args.work.absolute(), participants=args.participants, fresh=args.fresh))
    except ProgramError as error:
        sys.exit(str(error))


def measure_console(options: Options) -> None:
    """Measure every page that links lead to, and print a table."""
    folder = options.work / f"console-{options.participants}"
    if options.fresh:
        shutil.rmtree(folder, ignore_errors=True)
    server = DemoServer(folder)
    if not (folder / "filled").exists():
        folder.mkdir(parents=True, exist_ok=True)
        with server.running(workers=1):
            pass
        server.import_copies(server.plan_manager, RESOURCES, options.participants)
        (folder / "filled").touch()
    with server.running(workers=1), httpx.Client(base_url=server.url, timeout=60) as client:
        server.sign_in(client)
        addresses = _find_pages(client)
        timings = [_measure(client, path, address) for path, address in sorted(addresses.items())]
    sys.stdout.write("\n".join(_table(timings)) + "\n")


def _find_pages(client: httpx.Client) -> dict[str, str]:
    """One address of each page, by path. Paths without ids take precedence."""
    routes = [
        route
        for route in page_routes()
        if route.method == "GET" and get_type_hints(route.handler)["return"] is not Download
    ]
    paths = sorted((route.path for route in routes), key=lambda path: path.count("{"))
    patterns = {path: re.compile(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(path))) for path in paths}
    addresses, queue = dict[str, str](), ["/console"]
    while queue:
        address = queue.pop(0)
        path = next((each for each in paths if patterns[each].fullmatch(address.partition("?")[0])), None)
        if path is None or path in addresses:
            continue
        addresses[path] = address
        response = client.get(address, follow_redirects=True)
        queue += [unescape(each) for each in re.findall(r'href="(/console[^"]*)"', response.text)]
    return addresses


def _measure(client: httpx.Client, path: str, address: str) -> PageTiming:
    durations: list[float] = []
    for number in count():
        started = time.perf_counter()
        response = client.get(address)
        if number >= WARM_UP_REQUESTS:
            durations.append((time.perf_counter() - started) * 1000)
        if response.status_code not in (200, 303):
            raise ProgramError(f"{address} returned status {response.status_code}")
        if len(durations) == TIMED_REQUESTS:
            break
    assets = set(re.findall(r'(?:href|src)="(/console/assets/[^"]+)"', response.text))
    kb = len(response.content) / 1000
    asset_kbs = [len(client.get(unescape(asset)).content) / 1000 for asset in assets]
    return PageTiming(path, statistics.median(durations), max(durations), kb, kb + sum(asset_kbs))


def _table(timings: list[PageTiming]) -> list[str]:
    rows = [
        [f"`{each.path}`", *(f"{value:.1f}" for value in (each.median, each.slowest, each.kb, each.kb_with_assets))]
        for each in timings
    ]
    return markdown_table([["Page", "median ms", "slowest ms", "KB", "KB with assets"], *rows])


if __name__ == "__main__":
    main()
