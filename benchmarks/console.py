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
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape
from itertools import count
from pathlib import Path
from typing import Any, get_type_hints
from uuid import UUID

import httpx

from benchmarks.processes import Program, ProgramError, free_port, run_program
from plankeeper.console.application import page_routes
from plankeeper.console.routing import Download
from plankeeper.demo import plan_managers, records
from plankeeper.http.json import to_json

PROGRAM: list[str | Path] = [sys.executable, "-m", "plankeeper"]
RESOURCES = ("participants", "providers", "team-members", "invoices", "invoice-view-sessions")
WARM_UP_REQUESTS, TIMED_REQUESTS = 5, 40  # requests per page
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
# References that have the same value in every copy.
_SHARED = {"account_manager_id", "exit_reason_category_id", "exit_reason_subcategory_id"}


@dataclass(frozen=True)
class Options:
    work: Path
    participants: int
    fresh: bool


@dataclass(frozen=True)
class PageTiming:
    """A page: milliseconds of its requests, bytes of the page alone and with its assets."""

    path: str
    median: float
    slowest: float
    size: int
    size_with_assets: int


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
    if not (folder / "filled").exists():
        _fill_database(folder, options.participants)
    port = free_port()
    serve = [*PROGRAM, "serve", "--demo", "--no-webhook-worker", "--workers", "1", "--port", str(port)]
    log = folder / "serve.log"
    program = Program(serve, log, _settings(folder))
    try:
        _wait_for_ready(log)
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
            _sign_in(client, log.read_text())
            addresses = _find_pages(client)
            timings = [_measure(client, path, address) for path, address in sorted(addresses.items())]
    finally:
        program.stop()
    sys.stdout.write("\n".join(_table(timings)) + "\n")


def _settings(folder: Path) -> dict[str, str]:
    return {"PLANKEEPER_DATA_DIR": str(folder / "cluster"), "PLANKEEPER_ACCESS_LOG": "off"}


def _fill_database(folder: Path, participants: int) -> None:
    """Load the sample data, then import the copies."""
    env, plan_manager = _settings(folder), plan_managers()[0]
    folder.mkdir(parents=True, exist_ok=True)
    serve = Program([*PROGRAM, "serve", "--demo", "--no-webhook-worker", "--port", "0"], folder / "fill.log", env)
    try:
        _wait_for_ready(folder / "fill.log")
    finally:
        serve.stop()
    rows = {resource: list(items) for resource, items in records(plan_manager.id, 1)}
    copies = max(1, participants // len(rows["participants"]) - 1)
    for resource in RESOURCES:
        file = folder / f"{resource}.jsonl"
        with file.open("w") as out:
            out.writelines(to_json(row) + "\n" for row in _copies(rows[resource], copies))
        run_program(
            [*PROGRAM, "import", resource, file, "--plan-manager", str(plan_manager.id)], extra_env=env, seconds=1800
        )
    (folder / "filled").touch()


def _wait_for_ready(log: Path) -> None:
    deadline = time.monotonic() + 120
    while "Plankeeper is ready" not in log.read_text():
        if time.monotonic() > deadline:
            raise ProgramError(f"the server is not ready after 120 s: {log.read_text()[-1000:]}")
        time.sleep(0.1)


def _copies(rows: list[dict[str, Any]], copies: int) -> Iterator[dict[str, Any]]:
    for number in range(1, copies + 1):
        for row in rows:
            yield _copy_row(row, number)


def _copy_row(row: dict[str, Any], number: int) -> dict[str, Any]:
    """A row of a copy: ids consistent with the other rows of the copy, and a unique email."""
    copy: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            copy[name] = [_copy_row(each, number) for each in value]
        elif isinstance(value, str) and _UUID.fullmatch(value) and name not in _SHARED:
            copy[name] = str(UUID(int=UUID(value).int ^ (number << 16)))
        elif name == "email" and value:
            copy[name] = f"{number}.{value}"
        elif name == "participant_number" and value:
            copy[name] = f"{(int(value) + number * 7919) % 10**9:09}" if value.isdigit() else value
        else:
            copy[name] = value
    return copy


def _sign_in(client: httpx.Client, log: str) -> None:
    email, password = re.findall(r"^Sign-in: +(\S+), password (\S+)$", log, re.MULTILINE)[0]
    token = re.findall(r'name="csrf" value="([^"]+)"', client.get("/console/sign-in").text)[0]
    form = {"csrf": token, "email": email, "password": password}
    response = client.post("/console/sign-in", data=form, headers={"Origin": str(client.base_url).rstrip("/")})
    if response.status_code != 303:
        raise ProgramError(f"signing in returned status {response.status_code}")


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
    size = len(response.content)
    asset_sizes = [len(client.get(unescape(asset)).content) for asset in assets]
    return PageTiming(path, statistics.median(durations), max(durations), size, size + sum(asset_sizes))


def _table(timings: list[PageTiming]) -> list[str]:
    lines = ["| Page | median ms | slowest ms | KB | KB with assets |", "|---|---|---|---|---|"]
    return lines + [
        f"| `{each.path}` | {each.median:.1f} | {each.slowest:.1f}"
        f" | {each.size / 1000:.1f} | {each.size_with_assets / 1000:.1f} |"
        for each in timings
    ]


if __name__ == "__main__":
    main()
