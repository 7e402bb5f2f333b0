"""docs/webhooks.md says what the code says: the receivers, the message, the schedule, the types of events."""

import json
import re
from datetime import UTC, datetime
from uuid import UUID

import pytest

from plankeeper.core.context import SYSTEM, Actor
from plankeeper.events.schemas import Event, ResourceRef
from plankeeper.webhooks.messages import build_body, build_headers, new_secret
from plankeeper.webhooks.retry_policy import MAX_JITTER, RETRY_DELAYS
from plankeeper.webhooks.schemas import Attempt
from support.pages import PROJECT, blocks, matches, section, table_rows

PAGE = "docs/webhooks.md"
SECONDS = {"s": 1, "min": 60, "h": 3600}


@pytest.mark.parametrize("language, file", [("python", "receiver.py"), ("js", "receiver.mjs")])
def test_the_receivers_on_the_page_are_the_tested_ones(language: str, file: str) -> None:
    [shown] = [each.text for each in blocks(PAGE) if each.language == language]
    assert shown + "\n" == (PROJECT / "docs/examples" / file).read_text()


def test_the_page_shows_the_actual_message() -> None:
    [shown] = [each.text for each in blocks(PAGE) if not each.language]
    head, _, body = shown.partition("\n\n")
    request, host, *headers = head.splitlines()
    assert (request, host) == ("POST /plankeeper HTTP/1.1", "host: hooks.example.com")
    message = json.loads(body)
    moment = datetime.fromisoformat(message["timestamp"])
    resource, actor = ResourceRef(**message["data"]["resource"]), Actor(**message["actor"])
    event = Event(
        UUID(int=0), message["type"], moment, actor, resource, None, None, message["request_id"], message["sequence"]
    )
    assert body.encode() == build_body(event, UUID(message["data"]["plan_manager_id"]), "thin")
    sent = build_headers("an id", int(moment.timestamp()), body.encode(), [new_secret()])
    assert [each.partition(": ")[0] for each in headers] == [name for name, _ in sent]
    values = {name: value for name, _, value in (each.partition(": ") for each in headers)}
    assert matches(values["user-agent"], dict(sent)["user-agent"])
    assert values["webhook-timestamp"] == dict(sent)["webhook-timestamp"]
    assert len(values["webhook-signature"]) == len(dict(sent)["webhook-signature"])


def test_the_page_names_every_header_and_every_field_of_a_message() -> None:
    headers = [name for name, _ in build_headers("an id", 0, b"", [new_secret()]) if name.startswith("webhook-")]
    event = Event(UUID(int=0), "a.b", datetime.now(UTC), SYSTEM, ResourceRef("a", "b"), None, None, None, 1)
    full = json.loads(build_body(event, UUID(int=0), "full"))
    fields = [each for each in full if each != "data"] + [f"data.{each}" for each in full["data"]]
    assert [row[0].strip("`") for row in table_rows(section(PAGE, "The message"))] == headers + fields


def test_the_page_names_every_field_of_an_attempt() -> None:
    assert set(re.findall(r"`(\w+)`", section(PAGE, "Deliveries"))) >= set(Attempt.__struct_encode_fields__)


def test_the_page_has_the_schedule_and_the_statuses() -> None:
    listed = [row for row in table_rows(section(PAGE, "When a delivery fails")) if row[0].isdecimal()]
    waits = [wait.split(" ") for _, wait in listed]
    assert [int(number) for number, _ in listed] == list(range(1, len(RETRY_DELAYS) + 1))
    assert [int(figure) * SECONDS[unit] for figure, unit in waits] == [each.total_seconds() for each in RETRY_DELAYS]
    assert MAX_JITTER == 0.1, "the page says: up to a tenth longer"
    statuses = [row[0] for row in table_rows(section(PAGE, "When a delivery fails")) if not row[0].isdecimal()]
    assert statuses == ["`pending`", "`succeeded`", "`failed`", "`cancelled`"]


def test_the_page_lists_every_type_of_event() -> None:
    source = "\n".join(path.read_text() for path in (PROJECT / "src").rglob("*.py"))
    written = set(re.findall(r'"([a-z_]+\.[a-z_]+(?:ed|ing))"', source))
    written |= {
        f"{kind}.{what}"
        for kind in re.findall(r'created_or_updated\("(\w+)"\)', source)
        for what in ("created", "updated")
    }
    written |= {"invoice_view_session.started", "invoice_view_session.ended", "account.signed_in"}
    written |= {
        "invoice.held",
        "payment_run.paid",
        "statement.sent",
        "invoice.claimed_elsewhere",
        "invoice.wont_claim",
        "account.invitation_withdrawn",
        "account.password_reset",
    }
    listed = [
        f"{kind.strip('`')}.{what}"
        for kind, types, _ in table_rows(section(PAGE, "Event types"))
        for what in re.findall(r"`(\w+)`", types)
    ]
    assert sorted(listed) == sorted(written)
