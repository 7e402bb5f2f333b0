"""Notices to owners: webhook endpoints that were disabled, and keys that expire soon."""

from collections.abc import Iterator
from datetime import timedelta
from ipaddress import ip_network
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from plankeeper.access.api_keys import service
from plankeeper.access.plan_managers import store as plan_managers
from plankeeper.core.context import SYSTEM, WriteContext
from support.client import Client
from support.cluster import SharedCluster
from support.console import Account, create_account
from support.mail import PUBLIC_URL
from support.outbox import MailingServer, mailing_server
from support.receiver import Receiver
from support.server import wait_until
from support.webhooks import emit_events, poll_once, wait_for_deliveries, wait_for_events


@pytest.fixture(scope="module")
def mailing(cluster: SharedCluster) -> Iterator[MailingServer]:
    with mailing_server(cluster, webhook_allowed_networks=(ip_network("127.0.0.0/8"),)) as found:
        yield found


async def create_plan_manager(mailing: MailingServer, name: str) -> UUID:
    async with mailing.server.db.transaction() as tx:
        plan_manager = await plan_managers.insert(tx, uuid7(), name)
        assert plan_manager
        return plan_manager.id


async def create_key(mailing: MailingServer, lifetime: timedelta | None, *plan_manager_ids: UUID) -> str:
    async with mailing.server.db.transaction() as tx:
        ctx = WriteContext(tx, plan_manager_ids[0], mailing.server.settings, SYSTEM)
        return await service.create(ctx, "nightly report", plan_manager_ids, ["read", "write"], lifetime)


@pytest.fixture
def plan_manager_id(mailing: MailingServer) -> UUID:
    return mailing.server.run(create_plan_manager(mailing, "Wattlebird Plans"))


@pytest.fixture
def people(mailing: MailingServer, plan_manager_id: UUID) -> dict[str, Account]:
    """Two owners, and two who aren't."""
    roles = {"first": "owner", "second": "owner", "manager": "manager", "viewer": "viewer"}
    return {
        name: mailing.server.run(create_account(mailing.server, plan_manager_id, role)) for name, role in roles.items()
    }


def wait_for_empty_queue(mailing: MailingServer) -> None:
    statement = "select count(*) from outgoing_mails"
    wait_until(lambda: mailing.server.run(mailing.server.db.one(int, statement)) == 0)


def counts(mailing: MailingServer, people: dict[str, Account]) -> dict[str, int]:
    return {name: len(mailing.mail.to(each.email)) for name, each in people.items()}


def test_owners_are_notified_of_an_expiring_key_once(
    mailing: MailingServer, plan_manager_id: UUID, people: dict[str, Account]
) -> None:
    other = mailing.server.run(create_plan_manager(mailing, "Saltbush Plans"))
    foreign = mailing.server.run(create_account(mailing.server, other, "owner"))
    mailing.server.run(create_key(mailing, timedelta(days=15), plan_manager_id))
    key = mailing.server.run(create_key(mailing, timedelta(days=13), plan_manager_id, other))
    for owner, name in ((people["first"], "Wattlebird Plans"), (foreign, "Saltbush Plans")):
        mail = mailing.mail.wait_for(owner.email)
        assert mail.message["Subject"] == f"API key expires soon: {name}"
        assert f"An API key of {name} expires on " in mail.text
        assert f"nightly report (...{key[-4:]})" in mail.text
        assert mail.links == [f"{PUBLIC_URL}/console/settings/keys"]
        assert key not in mail.text
    wait_for_empty_queue(mailing)
    mailing.server.run(service.record_expiry_warnings(mailing.server.db, mailing.server.settings))
    wait_for_empty_queue(mailing)
    assert counts(mailing, people) == {"first": 1, "second": 1, "manager": 0, "viewer": 0}
    assert len(mailing.mail.to(foreign.email)) == 1
    assert "Saltbush" not in mailing.mail.to(people["first"].email)[0].text


def test_owners_are_notified_of_a_disabled_webhook_endpoint(
    mailing: MailingServer, plan_manager_id: UUID, people: dict[str, Account]
) -> None:
    key = mailing.server.run(create_key(mailing, None, plan_manager_id))
    api = Client(mailing.server.url, key, plan_manager_id)
    with Receiver() as receiver:
        receiver.respond = lambda *_: (410, {}, b"")
        endpoint = api.create("/webhook-endpoints", {"url": receiver.url, "event_types": ["note_type.*"]})
        emit_events(mailing.server, api, 3)
        wait_for_deliveries(api, endpoint, 3)
        poll_once(mailing.server)
    wait_for_events(api, "webhook_endpoint.disabled")
    for name in ("first", "second"):
        mail = mailing.mail.wait_for(people[name].email)
        assert mail.message["Subject"] == "Webhook endpoint disabled: Wattlebird Plans"
        assert "was disabled, because it responded with 410 Gone:" in mail.text
        assert mail.links == [receiver.url, f"{PUBLIC_URL}/console/settings/webhooks/{endpoint['id']}"]
    wait_for_empty_queue(mailing)
    assert counts(mailing, people) == {"first": 1, "second": 1, "manager": 0, "viewer": 0}
    api.http.close()
