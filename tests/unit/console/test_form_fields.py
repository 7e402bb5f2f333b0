"""The tables of fields of which forms, overviews and columns are made."""

import pytest

from plankeeper.console.components.fields import FormField, FormSection
from plankeeper.console.participants.form import SECTIONS
from plankeeper.console.providers.form import FORM
from plankeeper.core.validation import known_fields
from plankeeper.resources.participants.schemas import ParticipantUpdate
from plankeeper.resources.providers.schemas import ProviderUpdate

NOT_EDITED = {"external_id"}  # other systems set it


@pytest.mark.parametrize("sections", [list(SECTIONS.values()), [FORM]], ids=["participants", "providers"])
def test_a_form_has_each_field_that_can_be_set_once(sections: list[FormSection]) -> None:
    names = [name for section in sections for name in section.fields]
    assert sorted(names) == sorted(set(known_fields(sections[0].struct_type)) - NOT_EDITED)


@pytest.mark.parametrize(
    "struct_type, name, length",
    [(ParticipantUpdate, "pronouns", 255), (ParticipantUpdate, "reason_for_leaving", 10_000),
     (ProviderUpdate, "email", 254), (ParticipantUpdate, "date_of_birth", None), (ParticipantUpdate, "status", None)],
)  # fmt: skip
def test_a_length_is_limited_as_in_the_struct(struct_type: type, name: str, length: int | None) -> None:
    assert FormSection(struct_type, "", (FormField(name),)).max_length(name) == length
