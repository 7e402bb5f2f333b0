"""The columns page of an import: the field of each column, and the matching of rows."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from plankeeper.console.components.labels import field_label
from plankeeper.console.shell.routing import FormRequest, PageRequest
from plankeeper.core.errors import ValidationError
from plankeeper.imports import store
from plankeeper.imports.columns import (
    IGNORED,
    field_names,
    fold,
    guess_mapping,
    guess_resource,
    is_certain,
)
from plankeeper.imports.matching import NUMBERED
from plankeeper.imports.schemas import ExistingRecords, Import, ImportOptions
from plankeeper.imports.source_files import SourceFile, sample_cells

MAX_SAMPLES = 3  # values of a column that the page shows
EXISTING: dict[ExistingRecords, str] = {
    "update": "Update the record",
    "skip": "Skip the row",
    "create": "Create another record anyway",
}


class ImportKind(NamedTuple):
    """A resource that people can import, and the columns that identify a record."""

    label: str
    matched_by: str


# Ordered by their references to each other.
IMPORT_KINDS = {
    "exit-reasons": ImportKind("Exit reasons", "ID"),
    "account-managers": ImportKind("Account managers", "ID or email"),
    "participants": ImportKind("Participants", "ID or NDIS number"),
    "plans": ImportKind("Plans", "ID, or participant and dates"),
    "providers": ImportKind("Providers", "ID or ABN"),
    "note-types": ImportKind("Note types", "ID"),
    "team-members": ImportKind("Team members", "participant and email, or ID"),
    "invoices": ImportKind("Invoices", "ID"),
    "notes": ImportKind("Notes", "ID"),
}
_MOST_LIKELY = "participants"


async def options_for(request: FormRequest, file: SourceFile, resource: str) -> tuple[ImportOptions, bool]:
    """The first options for a file, and whether its columns need no review."""
    if file.is_json:
        return ImportOptions(resource or _MOST_LIKELY, None), bool(resource)
    mappings = await store.list_mappings(request.tx, request.plan_manager_id)
    kind = resource or guess_resource(file.columns, mappings)
    remembered = mappings.get(kind or _MOST_LIKELY, {})
    mapping = guess_mapping(kind or _MOST_LIKELY, file.columns, remembered)
    certain = kind is not None and is_certain(file.columns, mapping, remembered)
    return ImportOptions(kind or _MOST_LIKELY, mapping), certain


async def choose_options(
    request: PageRequest, record: Import, file: SourceFile
) -> tuple[ImportOptions, dict[str, str]]:
    """The options of the columns page: those of its form, the saved ones, or a guess for another resource.

    With them the choices to remember: the field of each column of the form by its folded name.
    """
    kind = request.form.text("resource") or request.query.text("kind")
    resource = kind if kind in IMPORT_KINDS else record.resource
    if request.form:
        mapping = _mapping_of_form(request, file, resource)
    elif record.mapping is not None and resource == record.resource:
        mapping = list(record.mapping)
    else:
        remembered = await store.list_mappings(request.db, request.plan_manager_id)
        mapping = guess_mapping(resource, file.columns, remembered.get(resource, {}))
    existing = request.form.text("existing") or record.existing
    options = ImportOptions(
        resource,
        None if file.is_json else mapping,
        existing if existing in EXISTING else "update",
        clears_empty=bool(request.form.text("clears_empty")) if request.form else record.clears_empty,
        sets_states=_sets_states(request, resource) if request.form else record.sets_states,
    )
    return options, dict(zip(map(fold, file.columns), mapping, strict=True)) if request.form else {}


def _sets_states(request: PageRequest, resource: str) -> bool:
    """Whether an owner says that the file is the record of claim and approval states."""
    return resource == "invoices" and request.has_role("owner") and bool(request.form.text("sets_states"))


def columns_context(record: Import, file: SourceFile, options: ImportOptions) -> dict[str, Any]:
    """The context of the columns page."""
    numbered = NUMBERED.get(options.resource)
    samples = sample_cells(file, MAX_SAMPLES)
    return {
        "record": record,
        "kinds": IMPORT_KINDS,
        "options": options,
        "fields": {name: field_label(name) for name in field_names(options.resource)},
        "columns": list(zip(file.columns, options.mapping, samples, strict=True)) if options.mapping else [],
        "existing_choices": EXISTING if numbered else {},
        "numbered": numbered,
    }


def require_valid_mapping(options: ImportOptions, columns: Sequence[str]) -> None:
    """Raises ValidationError if a field is chosen twice, or none is."""
    mapping = options.mapping
    if mapping is None:
        return
    if not any(mapping):
        raise ValidationError(columns="must include at least one that is imported")
    for field in dict.fromkeys(filter(None, mapping)):
        names = [column for column, chosen in zip(columns, mapping, strict=True) if chosen == field]
        if len(names) > 1:
            raise ValidationError(
                columns=f"must each have a field of their own, but {' and '.join(names)} are both {field_label(field)}"
            )


def _mapping_of_form(request: PageRequest, file: SourceFile, resource: str) -> list[str]:
    known = field_names(resource)
    chosen = [request.form.text(f"column-{position}") for position in range(len(file.columns))]
    return [each if each in known else IGNORED for each in chosen]
