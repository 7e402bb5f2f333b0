"""The fields of a record: how a form edits each of them, and how pages and lists show it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cache
from typing import Any, Literal, NamedTuple

from msgspec import Struct
from msgspec.json import schema_components

from plankeeper.console.components.labels import field_label
from plankeeper.core.fields import STATE_CODES, custom_schema

# How a field is edited and shown. A number or code in digits is a text for which phones show a numeric keyboard.
FieldKind = Literal[
    "text",
    "textarea",
    "lines",
    "email",
    "phone",
    "digits",
    "ndis_number",
    "abn",
    "date",
    "amount",
    "checkbox",
    "select",
]

NOT_SET = {"": "Not set"}
STATE_OPTIONS = NOT_SET | {each: each for each in STATE_CODES}


@dataclass(frozen=True)
class FormField:
    """A field of a record, whose label is that of `field_label`.

    `size` is the width of its control: `short`, `medium` or, without one, wide. `options` are the labels of a select by
    value; a form can add others. `read` returns the shown value of a record whose field is a reference, or combines
    several fields. A field can be in the form alone, or in the overview alone.
    """

    name: str
    kind: FieldKind = "text"
    _: KW_ONLY
    hint: str = ""
    size: Literal["", "short", "medium"] = ""
    options: Mapping[str, str] | None = None
    read: Callable[[Any], object] | None = None
    in_form: bool = True
    in_overview: bool = True

    def value(self, record: Struct) -> object:
        """The value as a page shows it: a list of lines, or what a filter of the kind formats."""
        value: Any = self.read(record) if self.read else getattr(record, self.name)
        if self.kind == "textarea":
            return str(value or "").splitlines()
        return self.options.get(value, value) if self.options and value else value


Row = FormField | Sequence[FormField]  # fields in one row stand side by side


@dataclass(frozen=True)
class FormSection:
    """A part of a form, whose values `struct_type` validates.

    An overview begins with the fields `first_shown`; the others follow in the order of the form.
    """

    struct_type: type[Struct]
    title: str
    rows: Sequence[Row]
    first_shown: Sequence[str] = ()

    @property
    def all_fields(self) -> list[FormField]:
        """The fields of the form and of the overview, in the order of the overview."""
        found = [each for row in self.rows for each in ([row] if isinstance(row, FormField) else row)]
        order = {name: position for position, name in enumerate(self.first_shown)}
        return sorted(found, key=lambda each: order.get(each.name, len(order)))

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of the fields of the form."""
        return tuple(each.name for each in self.all_fields if each.in_form)

    def max_length(self, name: str) -> int | None:
        """The maximum number of characters."""
        return _max_lengths(self.struct_type).get(name)


@cache
def _max_lengths(struct_type: type[Struct]) -> Mapping[str, int]:
    _, components = schema_components([struct_type], schema_hook=custom_schema)
    return {
        name: choice["maxLength"]
        for name, schema in components[struct_type.__name__]["properties"].items()
        for choice in schema.get("anyOf", [schema])
        if "maxLength" in choice
    }


class ShownValue(NamedTuple):
    """A value with its label. `kind` decides how the page shows it."""

    label: str
    kind: FieldKind
    value: object


class ShownSection(NamedTuple):
    """A section of an overview: `name` is the part of the path of the form that changes it."""

    name: str
    title: str
    values: list[ShownValue]
    missing: list[str]  # the labels of values that aren't set, such as `preferred name`


def show_section(name: str, section: FormSection, record: Struct) -> ShownSection:
    fields = [(each, each.value(record)) for each in section.all_fields if each.in_overview]
    values = [ShownValue(field_label(each.name), each.kind, value) for each, value in fields if _is_set(value)]
    # Other systems set the external id, not people.
    missing = [field_label(each.name) for each, value in fields if not _is_set(value) and each.name != "external_id"]
    return ShownSection(name, section.title, values, [_in_sentence(label) for label in missing])


def _is_set(value: object) -> bool:
    return value is not None and value not in ("", [])


def _in_sentence(label: str) -> str:
    return label if label[1:2].isupper() else label[:1].lower() + label[1:]
