"""Every payload in every text that the templates' macros take, without a database."""

from typing import Any
from zoneinfo import ZoneInfo

import pytest
from jinja2 import nodes

from plankeeper.console.templating import create_environment
from support.attacks import PAYLOADS, PageParser

ENVIRONMENT = create_environment(ZoneInfo("Australia/Sydney"))
TEMPLATES = ENVIRONMENT.list_templates(extensions=["html"])
TEXT = object()  # a payload stands for it

# The macros that take texts of people, each with arguments.
CALLS: dict[str, dict[str, Any]] = {
    "parts.html field": {"name": "a", "label": TEXT, "value": TEXT, "faults": {}, "hint": TEXT},
    "parts.html choice": {"name": "a", "label": TEXT, "choices": {"x": TEXT}, "chosen": TEXT, "hint": TEXT},
    "parts.html copied": {"id": "a", "text": TEXT, "label": TEXT},
    "parts.html press": {"action": "/console", "label": TEXT, "csrf": TEXT},
    "parts.html token": {"csrf": TEXT},
    "parts.html area": {"name": "a", "label": TEXT, "value": TEXT, "faults": {}, "hint": TEXT},
    "parts.html ticks": {"name": "a", "legend": TEXT, "choices": {"x": TEXT}, "chosen": [TEXT], "hint": TEXT},
    "parts.html swatch": {"color": TEXT},
    "records.html fact": {"label": TEXT, "value": TEXT, "kind": "wide"},
    "records.html fact_email": {"label": TEXT, "value": TEXT},
    "records.html number": {"value": TEXT, "is_right": False},
    "records.html abn": {"value": TEXT, "is_right": False},
    "records.html status": {"value": TEXT},
    "records.html kept": {"csrf": TEXT, "mark": TEXT, "different": {"first_name": TEXT}},
    "invoice_parts.html claim": {"status": TEXT},
    "invoice_parts.html approval": {"status": TEXT},
}

# The others, with what they take.
NO_TEXTS = {
    "parts.html when": "a moment", "parts.html onwards": "addresses that the console makes",
    "records.html yes": "a flag",
    "records.html fact_day": "a day", "records.html term": "days", "records.html tick": "a form",
    "invoice_parts.html sum": "an amount", "events.html changed": "changes, which the pages of events show",
}  # fmt: skip


def macros() -> dict[str, nodes.Macro]:
    found: dict[str, nodes.Macro] = {}
    for template in TEMPLATES:
        assert ENVIRONMENT.loader
        tree = ENVIRONMENT.parse(ENVIRONMENT.loader.get_source(ENVIRONMENT, template)[0])
        found |= {f"{template} {each.name}": each for each in tree.find_all(nodes.Macro)}
    return found


def filled(value: Any, payload: str) -> Any:
    if isinstance(value, dict):
        return {name: filled(each, payload) for name, each in value.items()}
    if isinstance(value, list):
        return [filled(each, payload) for each in value]
    return payload if value is TEXT else value


def test_every_macro_is_tried_or_takes_no_text() -> None:
    assert set(macros()) == set(CALLS) | set(NO_TEXTS)


@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS)
@pytest.mark.parametrize("macro", CALLS)
def test_a_text_becomes_no_part_of_the_markup_and_is_shown_as_it_is(macro: str, payload: str) -> None:
    template, name = macro.split()
    module = ENVIRONMENT.get_template(template).make_module()
    shape = PageParser()
    shape.feed(str(getattr(module, name)(**filled(CALLS[macro], payload))))
    assert shape.faults == []
    assert payload.lower() in shape.said.lower()  # a status begins with a capital
