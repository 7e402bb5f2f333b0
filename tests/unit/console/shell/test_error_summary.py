"""The sentences of an error summary, and the order of the fields on the page."""

import pytest

from plankeeper.console.components.labels import error_sentence
from plankeeper.console.shell.templating import has_id, sort_by_position


@pytest.mark.parametrize(
    "name, message, sentence",
    [
        ("email", "must be an email address", "Email must be an email address."),
        ("plan_end_date", "31 Feb 2026 doesn’t exist", "Plan end date 31 Feb 2026 doesn’t exist."),
        ("first_name", "Enter a name", "Enter a name."),
        ("first_name", "at least one of a and b is required", "At least one of a and b is required."),
        ("form", "must be percent-encoded UTF-8", "The form must be percent-encoded UTF-8."),
        ("form", "Somebody else changed this.", "Somebody else changed this."),
    ],
)
def test_a_message_becomes_a_sentence(name: str, message: str, sentence: str) -> None:
    assert error_sentence(name, message) == sentence


def test_messages_are_in_the_order_of_the_fields_and_those_without_a_field_come_first() -> None:
    content = '<input id="first_name"><p id="email-hint"></p><input id="email"><input data-id="phone">'
    messages = {"email": "b", "first_name": "a", "phone": "c"}
    assert list(sort_by_position(messages, content)) == [("phone", "c"), ("first_name", "a"), ("email", "b")]
    assert [has_id(content, name) for name in messages] == [True, True, False]
