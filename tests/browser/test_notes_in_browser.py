"""Notes in a real browser, with and without JavaScript, on a wide and on a narrow screen."""

from typing import Any

from support.chromium import click
from support.client import Client


def test_a_phone_call_becomes_a_note_that_is_found_and_shown_with_invoices(
    visitor: Any, client: Client, has_script: bool
) -> None:
    client.create("/note-types", {"note_type": "Phone call", "badge_color": "#0b7285"})
    person = client.create("/participants", {"first_name": "Ada", "last_name": "Lindqvist"})["id"]
    provider = client.create("/providers", {"entity_name": "Quokka Care"})["id"]
    invoice = client.create(
        "/invoices", {"invoice_number": "Q-7", "participant_id": person, "pm_provider_id": provider}
    )["id"]
    visitor.set_viewport_size({"width": 1280 if has_script else 390, "height": 900})
    visitor.goto(f"/console/participants/{person}")
    visitor.locator(".add-note > summary").click()
    visitor.get_by_label("Text").fill("Prefers a call in the morning.")
    visitor.get_by_label("Alert: show it with every invoice").check()
    visitor.get_by_label("Pin it to the top").check()
    click(visitor, "button", "Save note")
    note = visitor.locator(".record-note")
    assert note.locator("strong").inner_text() == "Phone call"
    assert note.locator("rect").get_attribute("fill") == "#0b7285"
    assert note.get_by_text("Prefers a call in the morning.").is_visible()
    visitor.goto("/console/search?q=morning")
    click(visitor, "link", "Prefers a call in the morning.")
    assert visitor.get_by_role("heading", level=1).inner_text() == "Ada Lindqvist"
    visitor.goto(f"/console/invoices/{invoice}")
    first = visitor.get_by_label("Notes to read first")
    assert first.get_by_text("Prefers a call in the morning.").is_visible()
    assert first.get_by_text("on the participant").is_visible()
    for width in (1280, 390):
        visitor.set_viewport_size({"width": width, "height": 900})
        assert first.bounding_box()["y"] < visitor.locator(".status-line").bounding_box()["y"], width
