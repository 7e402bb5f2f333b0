"""Tables in the documentation say what the code says: operations, fields, filters, codes, columns, commands."""

import re
from collections.abc import Iterable, Sequence
from typing import Any, get_args
from uuid import UUID

import click
import msgspec
from msgspec import Struct
from msgspec.structs import fields

from plankeeper.cli import plankeeper
from plankeeper.core.errors import CODES, FIELD_CODES
from plankeeper.core.fields import FieldErrorCode, custom_schema
from plankeeper.core.lists import ListQuery, SortableQuery
from plankeeper.core.settings import Settings
from plankeeper.events.event_types import EVENT_TYPES
from plankeeper.http.routing import PREFIX, Operation
from plankeeper.resources.claims.eligibility import REASONS
from plankeeper.resources.error_catalogue.routes import ENTRIES
from plankeeper.resources.invoices.import_schemas import InvoiceLineImport
from plankeeper.resources.invoices.schemas import ClaimStatus
from plankeeper.resources.invoices.states import (
    APPROVAL_TRANSITIONS,
    LOCKED_FIELDS,
    LOCKED_STATUSES,
    TRANSITIONS,
    UNCHANGED,
    ApprovalAction,
    ApprovalTransition,
    Cause,
    InvoiceAction,
    InvoiceState,
    LineState,
    Transition,
    roll_up,
)
from plankeeper.resources.registry import RESOURCES
from plankeeper.server.app import operations
from support.client import DOCUMENT
from support.pages import PROJECT, pages, section, table_rows, text_of, without_blocks
from support.sweeps import sweep

DOCUMENTED = DOCUMENT["components"]["schemas"]
# The schemas of the tables under a heading, in their order.
SCHEMAS: dict[tuple[str, str], tuple[str, ...]] = {
    ("participants", "Fields"): ("Participant",),
    ("plans", "Fields"): ("Plan",),
    ("plans", "Components"): ("PlanComponent",),
    ("plans", "Funding periods"): ("FundingPeriod",),
    ("plans", "Spent elsewhere"): ("SpentElsewhere",),
    ("team-members", "Fields"): ("TeamMember",),
    ("team-members", "Permissions"): ("Permission",),
    ("providers", "Fields"): ("Provider",),
    ("bank-details", "Fields"): ("BankDetails",),
    ("bank-details", "Account fields"): ("AccountSummary",),
    ("exit-reasons", "Fields"): ("ExitReason",),
    ("note-types", "Fields"): ("NoteType",),
    ("notes", "Fields"): ("Note",),
    ("support-items", "Fields"): ("SupportItem",),
    ("support-items", "Price limits"): ("PriceLimits",),
    ("account-managers", "Fields"): ("AccountManager",),
    ("invoices", "Fields"): ("Invoice",),
    ("invoices", "Lines"): ("LineItem",),
    ("statements", "Fields"): ("Statement",),
    ("statements", "Components"): ("StatementComponent",),
    ("statements", "Lines"): ("StatementLine",),
    ("statements", "Adjustments"): ("StatementAdjustment",),
    ("statements", "Earlier changes"): ("StatementChange",),
    ("statements", "Sent"): ("StatementSend",),
    ("statement-runs", "Fields"): ("StatementRun",),
    ("statement-runs", "Fields of an item"): ("StatementRunItem",),
    ("statement-runs", "Recipients"): ("StatementRecipient",),
    ("invoice-view-sessions", "Fields"): ("InvoiceViewSession",),
    ("events", "Fields"): ("Event",),
    ("errors", "Errors"): ("Error",),
    ("errors", "Items of errors"): ("FieldError",),
    ("errors", "The catalogue"): ("ErrorCatalogueEntry",),
    ("webhook-endpoints", "Fields"): ("WebhookEndpointWithSecret", "WebhookDelivery"),
}


def require_rows(page: str, listed: Iterable[Sequence[object]], expected: Iterable[Sequence[object]]) -> None:
    """The rows of a table of the page are the expected ones, in any order. The error names those that differ."""
    rows, expected_rows = ([" | ".join(map(str, each)) for each in table] for table in (listed, expected))
    problems = [f"{page} lacks the row | {each} |" for each in expected_rows if each not in rows]
    problems += [f"{page} has a surplus row | {each} |" for each in rows if each not in expected_rows]
    assert not problems, "\n".join(problems)
    assert sorted(rows) == sorted(expected_rows), f"{page} has a row twice"


@sweep("place", SCHEMAS, ids=" ".join)
def test_a_page_describes_every_field_as_the_openapi_document_does(place: tuple[str, str]) -> None:
    page, heading = place
    expected = [
        [f"`{name}`", field["description"]]
        for schema in SCHEMAS[place]
        for name, field in DOCUMENTED[schema]["properties"].items()
    ]
    listed = [[name, _without_links(text)] for name, text in table_rows(section(f"docs/api/{page}.md", heading))]
    require_rows(f"docs/api/{page}.md", listed, expected)
    assert listed == expected, f"docs/api/{page}.md has the fields of {heading} in another order than the document"


def _without_links(text: str) -> str:
    return re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", text)


def scopes_of(operation: Operation) -> str:
    return (" or " if operation.one_scope else ", ").join(operation.required_scopes)


def test_the_api_index_has_every_operation() -> None:
    listed = [
        (method, path.strip("`"), scope, ours == "extension")
        for method, path, _, scope, ours in table_rows(section("docs/api/README.md", "Endpoints"))
    ]
    known = [
        (
            each.method,
            each.path.removeprefix(PREFIX),
            (" or " if each.one_scope else ", ").join(each.required_scopes) or "any",
            each.extension,
        )
        for each in operations()
    ]
    require_rows("docs/api/README.md", listed, known)


def test_every_list_filter_is_documented() -> None:
    rows = table_rows(section("docs/api/lists.md", "Filters"))
    shared = {row[0].strip("`"): f"Returns items {_without_links(row[1])}." for row in rows if len(row) == 2}
    listed = {
        (row[0].strip("`"), row[1].strip("`")): f"Returns items {_without_links(row[2])}."
        for row in rows
        if len(row) == 3
    }
    common = {field.name for field in fields(ListQuery)} | {"sort", "include", "on"}
    listed |= {
        (each.path.removeprefix(PREFIX), name): text
        for each in operations()
        if each.query and issubclass(each.query, SortableQuery)
        for name, text in shared.items()
    }
    known = {
        (each.path.removeprefix(PREFIX), parameter["name"]): parameter["description"]
        for each in operations()
        if each.query and issubclass(each.query, ListQuery)
        for parameter in DOCUMENT["paths"][each.path]["get"]["parameters"]
        if parameter.get("in") == "query" and parameter["name"] not in common
    }
    require_rows("docs/api/lists.md", *([(*place, text) for place, text in each.items()] for each in (listed, known)))


def test_the_documented_codes_match_the_catalogue() -> None:
    errors = table_rows(section("docs/api/errors.md", "Codes"))
    warnings = table_rows(section("docs/api/invoices.md", "Warnings"))
    assert errors == [
        [f"`{each.error_code}`", str(each.status), each.description]
        for each in sorted((each for each in ENTRIES if each.applies_to == "api"), key=lambda each: each.status or 0)
    ]
    explained = {each.error_code: each for each in ENTRIES if each.applies_to != "api"}
    assert sorted(warnings) == [[f"`{code}`", each.title, each.description] for code, each in explained.items()]


def test_the_documented_codes_of_fields_are_those_of_the_console() -> None:
    """The documentation can say more about the response, which the console doesn't have."""
    rows = table_rows(section("docs/api/errors.md", "Codes of items"))
    assert [code for code, _ in rows] == [f"`{code}`" for code in FIELD_CODES]
    assert set(FIELD_CODES) == set(get_args(FieldErrorCode))
    assert [text for _, text in rows if not text.startswith(tuple(FIELD_CODES.values()))] == []


def test_the_reasons_of_lines_that_are_left_out_are_listed() -> None:
    rows = table_rows(section("docs/api/claims.md", "Lines that are left out"))
    assert [(reason.strip("`"), meaning) for reason, meaning in rows] == [*REASONS.items()]


def test_every_event_type_is_listed() -> None:
    source = "\n".join(path.read_text() for path in (PROJECT / "src").rglob("*.py") if path.stem != "event_types")
    kinds = re.findall(r'created_or_updated\("(\w+)"\)', source)
    recorded = set(re.findall(r'"(\w+\.(?:created|updated|deleted)|api_key\.\w+)"', source))
    recorded |= {f"{kind}.{what}" for kind in kinds for what in ("created", "updated")}
    recorded |= set(re.findall(r'"(webhook_(?:endpoint|delivery)\.\w+)"', source))
    recorded |= set(re.findall(r'"(claim_batch\.\w+)"', source))
    recorded |= set(re.findall(r'"(account\.(?!html")\w+)"', source))
    recorded |= set(re.findall(r'"((?:participant|provider)\.(?:restored|purged|erased|hold_\w+))"', source))
    recorded |= set(re.findall(r'"(plan_manager\.\w+)"', source))
    recorded |= set(re.findall(r'"(invoice\.\w+)"', source)) & set(EVENT_TYPES)
    recorded |= set(re.findall(r'"(bank_details\.\w+)"', source)) & set(EVENT_TYPES)
    recorded |= set(re.findall(r'"(statement\.\w+)"', source)) & set(EVENT_TYPES)
    recorded |= set(re.findall(r'"(payment_run\.\w+)"', source))
    recorded |= set(re.findall(r'"(statement_run\.\w+)"', source))
    recorded |= {"invoice_view_session.started", "invoice_view_session.ended"}
    listed = table_rows(section("docs/api/events.md", "Types"))
    documented = {f"{kind.strip('`')}.{each}" for kind, what, _ in listed for each in re.findall(r"`(\w+)`", what)}
    assert documented == recorded == set(EVENT_TYPES)


@sweep("resource", RESOURCES)
def test_the_columns_of_an_import_are_listed(resource: str) -> None:
    _assert_columns(resource, RESOURCES[resource].import_schema)


def test_the_fields_of_invoice_lines_are_listed() -> None:
    _assert_columns("line_items of an invoice", InvoiceLineImport)


def _assert_columns(heading: str, shape: type[Struct]) -> None:
    expected = [[f"`{name}`", *_describe(schema)] for name, schema in _properties(shape).items()]
    listed = table_rows(section("docs/import-and-export.md", heading))
    require_rows("docs/import-and-export.md", listed, expected)


def _properties(shape: type[Struct]) -> dict[str, Any]:
    _, components = msgspec.json.schema_components([shape], schema_hook=custom_schema)
    return components[shape.__name__]["properties"]


def _describe(schema: dict[str, Any]) -> tuple[str, str]:
    """The accepted values of a column, and whether null is one of them."""
    choices = schema.get("anyOf", [schema])
    kinds = [each for each in choices if each.get("type") != "null"]
    null = len(kinds) < len(choices) or None in schema.get("enum", [])
    return _type_in_words(kinds[0] if "anyOf" in schema else schema), "yes" if null else ""


def _type_in_words(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        values = [value for value in schema["enum"] if value is not None]
        return ", ".join(f"`{value}`" for value in values)
    if schema.get("type") == "string":
        known = {"uuid": "UUID", "date": "date", "date-time": "datetime", "email": "email address", "decimal": "number"}
        return known.get(schema.get("format", ""), f"text, up to {schema.get('maxLength', 0):,} characters")
    if schema.get("type") == "array":
        return "list of objects" if "$ref" in schema["items"] else "list of codes"
    return {"boolean": "`true`, `false`", "integer": "whole number"}.get(schema.get("type", ""), "object")


def _commands(group: click.Group, path: str) -> dict[str, click.Command]:
    commands: dict[str, click.Command] = {}
    context = click.Context(group)
    for name in group.list_commands(context):
        here, command = f"{path} {name}", group.get_command(context, name)
        assert command
        commands |= _commands(command, here) if isinstance(command, click.Group) else {here: command}
    return commands


def test_the_command_line_page_has_every_command() -> None:
    headings = re.findall(r"^## (plankeeper .+)$", without_blocks("docs/command-line.md"), flags=re.MULTILINE)
    assert sorted(headings) == sorted(_commands(plankeeper, "plankeeper"))


@sweep("name", _commands(plankeeper, "plankeeper"))
def test_every_option_of_a_command_is_documented(name: str) -> None:
    command = _commands(plankeeper, "plankeeper")[name]
    listed = [row[0] for row in table_rows(section("docs/command-line.md", name))]
    assert sorted(listed) == sorted(_display_name(each) for each in command.params)


def test_the_global_options_are_documented() -> None:
    listed = [row[0] for row in table_rows(section("docs/command-line.md", "Options for every command"))]
    assert sorted(listed) == ["`--help`", *sorted(_display_name(each) for each in plankeeper.params)]


def _display_name(parameter: click.Parameter) -> str:
    if isinstance(parameter, click.Argument):
        return f"`{parameter.human_readable_name.upper().replace('_', '-')}`"
    return f"`{parameter.opts[0]}`"


@sweep("page", pages())
def test_settings_named_on_a_page_exist(page: str) -> None:
    known = {field.metadata["name"] for field in Settings.__dataclass_fields__.values()}
    assert set(re.findall(r"PLANKEEPER_[A-Z_]+", text_of(page))) <= known


def test_the_code_map_has_every_package() -> None:
    packages = {path.parent.name for path in (PROJECT / "src/plankeeper").glob("*/__init__.py")}
    named = set(re.findall(r"`(\w+)/`", without_blocks("docs/architecture.md")))
    assert packages <= named, f"docs/architecture.md does not name {sorted(packages - named)}"


def test_the_errors_page_has_a_section_for_each_code() -> None:
    """`documentation_url` of an error leads to it."""
    headings = re.findall(r"^### `(\w+)`$", without_blocks("docs/api/errors.md"), flags=re.MULTILINE)
    assert headings == list(CODES)


STATES_PAGE = "docs/invoice-states.md"


def _documented_transitions(heading: str) -> list[tuple[str, ...]]:
    rows = table_rows(section(STATES_PAGE, heading))
    return [(source, target, cause) for source, target, causes in rows for cause in causes.split(", ")]


def _coded_transitions(transitions: Iterable[Transition | ApprovalTransition]) -> list[tuple[str, ...]]:
    return [tuple(f"`{part}`" for part in each) for each in transitions]


def test_the_documented_transitions_of_lines_and_approvals_are_those_of_the_code() -> None:
    require_rows(STATES_PAGE, _documented_transitions("Lines"), _coded_transitions(TRANSITIONS))
    require_rows(STATES_PAGE, _documented_transitions("Approval"), _coded_transitions(APPROVAL_TRANSITIONS))
    # Two tables: what the causes are, and which of them leave a state as it is.
    rows = table_rows(section(STATES_PAGE, "Causes"))
    count = len(get_args(Cause))
    assert [cause for cause, _ in rows[:count]] == [f"`{each}`" for each in get_args(Cause)]
    unchanged = [(cause, status) for cause, states in rows[count:] for status in states.split(", ")]
    coded = [(f"`{cause}`", f"`{status}`") for cause, states in UNCHANGED.items() for status in states]
    require_rows(STATES_PAGE, unchanged, coded)


def test_the_documented_states_actions_and_locks_of_invoices_are_those_of_the_code() -> None:
    def first_cells(heading: str) -> list[str]:
        return [row[0].strip("`") for row in table_rows(section(STATES_PAGE, heading))]

    actions = [*get_args(get_args(InvoiceAction)[0]), *get_args(ApprovalAction)]
    assert first_cells("Actions") == actions
    assert sorted(first_cells("Locks")) == sorted([*LOCKED_STATUSES, *LOCKED_FIELDS])
    rows = first_cells("Invoices")
    assert sorted(rows) == sorted(DOCUMENTED["ClaimStatus"]["enum"])
    _require_order_of_roll_up(rows)


def _require_order_of_roll_up(rows: list[str]) -> None:
    """With a line in each of two states, an invoice has the first row that holds for one of them."""
    # These rows need all lines to have one state. An invoice with others is in the row that `some` names.
    some = {"cancelled": None, "paid": "partially_paid", "payment_ready": "partially_ready", "rejected": "new"}
    statuses: list[ClaimStatus] = [each for each in DOCUMENTED["ClaimStatus"]["enum"] if each != "on_hold"]
    for first in statuses:
        for second in statuses:
            lines = [
                LineState(invoice_id=UUID(int=1), id=UUID(int=number), number=number, claim_status=status)
                for number, status in enumerate((first, second), start=1)
            ]
            open_statuses = {first, second} - {"cancelled"} or {"cancelled"}
            holding = [some.get(each, each) if len(open_statuses) > 1 else each for each in open_statuses]
            expected = min((each for each in holding if each), key=rows.index)
            assert roll_up(InvoiceState(id=UUID(int=1), lines=tuple(lines))) == expected, (first, second)
