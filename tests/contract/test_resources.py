"""What the resources say about themselves fits together."""

from plankeeper.core.validation import known_fields
from plankeeper.events.event_types import EVENT_TYPES
from plankeeper.resources.registry import BY_KIND, RESOURCES
from plankeeper.resources.undo import UNDOABLE_TOGETHER, UNDOABLE_TYPES


def test_each_kind_of_events_belongs_to_one_resource() -> None:
    assert [name.replace("-", "_").removesuffix("s") for name in RESOURCES] == list(BY_KIND)
    assert {each.partition(".")[0] for each in EVENT_TYPES} >= set(BY_KIND)


def test_undoable_events_exist() -> None:
    assert UNDOABLE_TYPES | UNDOABLE_TOGETHER <= EVENT_TYPES
    assert len(UNDOABLE_TYPES) > 10


def test_an_undo_of_an_import_can_set_what_an_update_can() -> None:
    for resource in BY_KIND.values():
        importable = set(known_fields(resource.import_schema))
        updatable = set(known_fields(resource.update_schema)) if resource.update_schema else set[str]()
        updatable -= {"participant_number", "provider_abn"} if resource.kind == "invoice" else set()  # events have ids
        assert updatable | {each.column for each in resource.references.values()} <= importable, resource.kind


def test_dependents_belong_to_resources_that_can_be_deleted() -> None:
    owners = [BY_KIND[each.of] for resource in BY_KIND.values() for each in resource.dependents]
    assert {each.kind for each in owners if each.delete_many} == {"note_type", "participant", "provider"}
    assert all(each.delete_many for each in owners)
