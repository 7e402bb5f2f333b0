"""The boxes of event types, and what is stored of those that are ticked."""

import pytest

from plankeeper.console.components.events import event_type_groups, simplify_patterns
from plankeeper.events.event_types import SENT_PATTERNS


def test_every_pattern_has_a_box() -> None:
    boxes = ["*", *(each for group in event_type_groups() for each in (group.pattern, *group.types))]
    assert (sorted(boxes), len(boxes)) == (sorted(SENT_PATTERNS), len(set(boxes)))


@pytest.mark.parametrize(
    "selected, patterns",
    [
        ([], []),
        (["participant.created", "*", "x"], ["*"]),
        (
            ["participant.deleted", "invoice.updated", "participant.created"],
            ["invoice.updated", "participant.created", "participant.deleted"],
        ),
        (["participant.created", "participant.*", "invoice.created"], ["invoice.created", "participant.*"]),
        (["A!", "invoice.created"], ["invoice.created", "A!"]),
    ],
)
def test_types_that_others_include_are_left_out(selected: list[str], patterns: list[str]) -> None:
    assert simplify_patterns(selected) == patterns
