"""The types of events of a webhook endpoint are ticked, with and without JavaScript."""

from typing import Any
from uuid import UUID

from plankeeper.webhooks import endpoint_store
from plankeeper.webhooks.schemas import WebhookEndpointListQuery
from support.chromium import click
from support.server import RunningServer


def event_types(server: RunningServer, plan_manager_id: UUID) -> list[str]:
    """Those of the only endpoint."""
    (endpoint,) = server.run(endpoint_store.list_page(server.db, plan_manager_id, WebhookEndpointListQuery()))
    return endpoint.event_types


def test_types_are_ticked_and_changed_in_place(
    visitor: Any, server: RunningServer, plan_manager_id: UUID, has_script: bool
) -> None:
    visitor.goto("/console/settings/webhooks/new")
    groups = visitor.locator(".event-groups")
    assert groups.is_visible() == (not has_script)
    visitor.get_by_label("URL").fill("https://example.com/hooks")
    visitor.get_by_label("All events").uncheck()
    participant, invoice = (visitor.get_by_role("group", name=each, exact=True) for each in ("Participant", "Invoice"))
    participant.get_by_label("Participant: all").check()
    assert participant.get_by_label("created").is_disabled() == has_script
    invoice.get_by_label("updated").check()
    click(visitor, "button", "Create endpoint")
    assert event_types(server, plan_manager_id) == ["invoice.updated", "participant.*"]
    click(visitor, "link", "Done")
    click(visitor, "link", "Edit")
    assert participant.get_by_label("Participant: all").is_checked()
    participant.get_by_label("Participant: all").uncheck()
    assert not participant.get_by_label("deleted").is_checked()
    participant.get_by_label("deleted").check()
    click(visitor, "button", "Save endpoint")
    assert "Endpoint saved." in visitor.get_by_role("status").inner_text()
    assert event_types(server, plan_manager_id) == ["invoice.updated", "participant.deleted"]


def test_all_events_include_every_type(visitor: Any, server: RunningServer, plan_manager_id: UUID) -> None:
    visitor.goto("/console/settings/webhooks/new")
    visitor.get_by_label("URL").fill("https://example.com/hooks")
    click(visitor, "button", "Create endpoint")
    assert event_types(server, plan_manager_id) == ["*"]
