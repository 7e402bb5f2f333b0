"""300 sign-ins in flight from 300 networks: API requests neither fail nor wait, and a known device still signs in."""

import asyncio
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode

import psutil
import pytest

from plankeeper.console.shell.cookies import mask_token
from support.console import Browser
from support.folder import temporary_folder
from support.program import ServeProcess, command_line
from system.load.client import Connection, TimedResponse, closing, get_request, percentile

ATTACKERS, API_CLIENTS = 300, 4
API_PAUSE = 0.02  # seconds between two requests of an API client
# On quiet processors it is below 2. Other work on the machine, and a short run, need the margin.
MAX_RATIO = 6.0
EMAIL = "demo@plankeeper.example"
TOKEN = "x" * 43
FORM_TOKEN = mask_token(TOKEN)


@dataclass
class Flood:
    """The responses to the attackers."""

    statuses: Counter[int] = field(default_factory=Counter[int])


@pytest.fixture(scope="module")
def serving(copy_sample_data: Callable[[Path], None]) -> Iterator[ServeProcess]:
    with temporary_folder() as folder:
        copy_sample_data(folder)
        running = ServeProcess(folder, "--demo", workers=2, PLANKEEPER_TRUSTED_PROXIES="127.0.0.1")
        yield running
        assert running.stop() == 0


def sign_in_request(number: int) -> bytes:
    """A sign-in from a network of its own, as a proxy passes it on. The form has a mask of the cookie's token."""
    body = urlencode({"csrf": FORM_TOKEN, "email": f"nobody{number}@example.com", "password": "wrong-wrong-wrong"})
    lines = (
        "POST /console/sign-in HTTP/1.1", "Host: localhost", "Origin: http://localhost",
        f"Cookie: plankeeper-form={TOKEN}", f"X-Forwarded-For: 10.{number // 256}.{number % 256}.9",
        "Content-Type: application/x-www-form-urlencoded", f"Content-Length: {len(body)}", "", body,
    )  # fmt: skip
    return "\r\n".join(lines).encode()


async def attack(url: str, number: int, until: float, flood: Flood) -> None:
    """One sign-in after the other, without a pause."""
    connection = await Connection.open(url)
    async with closing([connection]):
        while time.time() < until:
            flood.statuses[(await connection.send(sign_in_request(number))).status] += 1


async def request_api(serving: ServeProcess, until: float, seen: list[TimedResponse]) -> None:
    connection = await Connection.open(serving.url)
    key, plan_manager_id = serving.output_value("API key:"), serving.output_value("Plan manager:")
    request = get_request("/participants?limit=20", key, plan_manager_id)
    async with closing([connection]):
        while time.time() < until:
            seen.append(await connection.send(request))
            await asyncio.sleep(API_PAUSE)


async def measure(serving: ServeProcess, seconds: float, attackers: int) -> tuple[list[TimedResponse], Flood]:
    """The API's responses, after a second in which the flood builds up."""
    seen, flood, start = list[TimedResponse](), Flood(), time.time()
    attacks = [
        asyncio.create_task(attack(serving.url, number, start + seconds + 1, flood)) for number in range(attackers)
    ]
    await asyncio.sleep(1 if attackers else 0)
    await asyncio.gather(*(request_api(serving, time.time() + seconds, seen) for _ in range(API_CLIENTS)))
    await asyncio.gather(*attacks)
    return seen, flood


def hashing_processes(serving: ServeProcess) -> list[psutil.Process]:
    return [each for each in serving.child_processes() if "password_process" in " ".join(command_line(each))]


def sign_in(serving: ServeProcess, browser: Browser) -> int:
    """Sign in as the owner of the sample data, from a network of their own."""
    password = next(line for line in serving.lines if line.startswith("Sign-in:")).rpartition(" ")[2]
    browser.http.headers["X-Forwarded-For"] = "192.0.2.7"
    browser.http.cookies.delete("plankeeper")
    form = {"email": EMAIL, "password": password}
    return browser.submit("/console/sign-in", form, "/console/sign-in").status_code


def test_a_flood_of_sign_ins_takes_nothing_from_the_api(serving: ServeProcess, is_full_run: bool) -> None:
    seconds, browser = (30.0, Browser(serving.url)) if is_full_run else (6.0, Browser(serving.url))
    assert sign_in(serving, browser) == 303
    asyncio.run(measure(serving, 1, 0))  # what is made once is made
    usual, _ = asyncio.run(measure(serving, seconds, 0))

    async def during_flood() -> tuple[list[TimedResponse], Flood, int]:
        flooding = asyncio.create_task(measure(serving, seconds, ATTACKERS))
        await asyncio.sleep(2)
        status = await asyncio.to_thread(sign_in, serving, browser)
        return *await flooding, status

    seen, flood, known_device_status = asyncio.run(during_flood())
    browser.http.close()
    p99, usual_p99 = (percentile([each.seconds for each in responses], 0.99) for responses in (seen, usual))
    sys.stdout.write(
        f"API without sign-ins: {len(usual)} requests, p99 {usual_p99 * 1000:.1f} ms; with {ATTACKERS} in flight:"
        f" {len(seen)} requests, p99 {p99 * 1000:.1f} ms; sign-ins: {dict(flood.statuses)}\n"
    )
    assert {each.status for each in usual} == {each.status for each in seen} == {200}
    assert p99 <= MAX_RATIO * usual_p99
    assert set(flood.statuses) <= {401, 429, 503}
    assert flood.statuses[401] > 0
    assert flood.statuses[503] > 0, "there were not enough sign-ins to prove anything"
    assert known_device_status == 303


def test_hashes_are_computed_by_processes_of_the_lowest_priority(serving: ServeProcess) -> None:
    browser = Browser(serving.url)
    assert sign_in(serving, browser) == 303
    browser.http.close()
    computing = hashing_processes(serving)
    assert computing
    assert {each.nice() for each in computing} == {19}
    assert {each.nice() for each in serving.workers()} == {psutil.Process().nice()}
    # One that dies is replaced with the next sign-in, whether or not its end was noticed before.
    for pause in (0, 0, 0.5, 0.5):
        for each in hashing_processes(serving):
            each.kill()
        time.sleep(pause)
        again = Browser(serving.url)
        assert sign_in(serving, again) == 303
        again.http.close()
