"""The committed document is the generated one, is valid OpenAPI 3.1, and agrees with the contract."""

import json
from collections.abc import Iterator
from typing import Any

from jsonschema_rs import Draft202012Validator, meta

from contract.operations import ALL_OPERATIONS, CONTRACT
from contract.sources import PROJECT
from plankeeper.core.errors import CODES
from plankeeper.http.routing import PREFIX
from plankeeper.server.app import openapi_document
from support.client import DOCUMENT
from support.sweeps import sweep

EXTENSION = "x-plankeeper-extension"
SCHEMAS: dict[str, Any] = DOCUMENT["components"]["schemas"]

# The contract's statuses (section 7): 401 and 429 apply to all.
_CREATE_STATUSES = {400, 403, 500}
_GET_STATUSES = {400, 403, 404, 500}
STATUSES = {
    "GET /participants": _CREATE_STATUSES,
    "GET /account-managers": _CREATE_STATUSES,
    "POST /participants": _CREATE_STATUSES,
    "POST /providers": _CREATE_STATUSES,
    "POST /note-types": _CREATE_STATUSES,
    "GET /participants/{participant_id}": _GET_STATUSES,
    "PUT /participants/{participant_id}": _GET_STATUSES,
    "DELETE /participants/{participant_id}": _GET_STATUSES,
    "GET /providers/{provider_id}": _GET_STATUSES,
    "DELETE /providers/{provider_id}": _GET_STATUSES,
    "GET /note-types/{note_type_id}": _GET_STATUSES,
    "GET /account-managers/{account_manager_id}": _GET_STATUSES,
    "GET /invoice-view-sessions/{session_id}": _GET_STATUSES,
    "GET /participants/{participant_id}/team-members": _GET_STATUSES,
    "PUT /participants/{participant_id}/team-members/{team_member_id}": _GET_STATUSES | {409},
}
# Statuses beyond the contract's (decisions, section 1): HTTP's own, and what answers a header of ours.
EXTRA_STATUSES = {409, 412, 413, 415, 422, 503}

# The query parameters that the contract gives its endpoints.
_LIST_PARAMETERS = {"limit", "offset", "after"}
PARAMETERS = {
    "GET /participants": _LIST_PARAMETERS | {"status", "state", "account_manager", "participant_number"},
    "GET /participants/{participant_id}/team-members": _LIST_PARAMETERS,
    "GET /account-managers": _LIST_PARAMETERS | {"active", "email"},
}
# The fields that the contract gives its bodies and answers.
BODIES = {
    "ParticipantCreate": {"first_name", "last_name", "participant_number", "email", "state"},
    "ParticipantUpdate": {"first_name", "last_name", "participant_number", "email", "state"},
    "ProviderCreate": {"entity_name", "abn", "email"},
    "ProviderUpdate": {"entity_name", "abn", "email"},
    "NoteTypeCreate": {"note_type", "badge_color", "highlight_color"},
    "TeamMemberUpdate": {
        "first_name", "last_name", "role", "permissions", "phone_number", "note", "secondary_email",
        "secondary_phone_number", "address_line_1", "city", "postcode", "state", "contact_priority",
    },
    "PaginationMeta": {"limit", "offset", "has_more", "total", "next_cursor"},
    "Provider": {"id", "entity_name", "abn", "email"},
    "AccountManager": {"id", "first_name", "last_name", "name", "email", "active"},
    "NoteType": {"id", "note_type", "plan_manager_id", "badge_color", "highlight_color"},
    "Permission": {"id", "name", "label", "order"},
    "ExitReasonRef": {"id", "name"},
    "AccountManagerRef": {"id", "name"},
    "InvoiceViewSession": {
        "id", "invoice_id", "user_id", "user_name", "session_started", "session_ended", "last_heartbeat",
        "duration_seconds", "created_at", "active_duration_seconds", "engaged_duration_seconds", "idle_count",
    },
    "TeamMember": {
        "id", "user_id", "pm_profile_id", "participant_id", "first_name", "last_name", "email", "role",
        "phone_number", "note", "secondary_email", "secondary_phone_number", "address_line_1", "city", "state",
        "postcode", "contact_priority", "permissions",
    },
    "Participant": {
        "id", "first_name", "middle_name", "last_name", "preferred_name", "participant_number", "email",
        "phone_number", "date_of_birth", "gender", "pronouns", "state", "postcode", "address_line_1",
        "address_line_2", "city", "service_region_id", "status", "approval_required", "onboard_date", "created_at",
        "date_ceased", "reason_for_leaving", "exit_reason_category", "exit_reason_subcategory", "account_manager",
        "is_pace_plan", "plan_start_date", "plan_end_date", "postal_statement", "participant_receives_statements",
    },
}  # fmt: skip


# Lists without links, with the reason.
NO_LINKS = {
    "GET /team-members",  # a member's path has two ids
    "GET /support-items",  # items have no page of their own
    "GET /claim-batches/{claim_batch_id}/lines",  # claims have no page of their own
    "GET /statement-runs/{statement_run_id}/items",  # items have no page of their own
    "GET /fees",  # fees have no page of their own
    "GET /fee-takings/{fee_taking_id}/lines",  # nor have the lines of takings
    "GET /payment-runs/{payment_run_id}/payments",  # payments have no page of their own
    "GET /claim-batches/{claim_batch_id}/receipts",  # nor have receipts
    "GET /invoices/{invoice_id}/adjustments",  # nor adjustments
    "GET /recoveries",  # nor what is to be recovered
    "GET /error-catalogue",  # entries have no page of their own
}


def operation_of(name: str) -> dict[str, Any]:
    method, path = name.split(" ")
    entry: dict[str, Any] = DOCUMENT["paths"][PREFIX + path][method.lower()]
    return entry


def resolved(response: dict[str, Any]) -> dict[str, Any]:
    """A response, or the shared one that it refers to."""
    name = response.get("$ref", "").rpartition("/")[2]
    return DOCUMENT["components"]["responses"][name] if name else response


def references(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        if "$ref" in part:
            yield part["$ref"]
        for each in part.values():
            yield from references(each)
    elif isinstance(part, list):
        for each in part:
            yield from references(each)


def test_the_committed_document_is_the_generated_one() -> None:
    is_current = (PROJECT / "openapi.json").read_text() == openapi_document()
    assert is_current, "run make openapi or, if responses have other fields, make examples"


def test_the_version_is_that_of_the_api() -> None:
    assert DOCUMENT["info"]["version"] == PREFIX.rpartition("/")[2]


def test_the_document_is_openapi_3_1() -> None:
    from schemathesis.specs.openapi.definitions import OPENAPI_31  # it takes a second to load

    assert DOCUMENT["openapi"].startswith("3.1.")
    assert [each.message for each in Draft202012Validator(OPENAPI_31).iter_errors(DOCUMENT)] == []
    broken = json.loads(json.dumps(DOCUMENT))
    del broken["info"]["title"]
    assert not Draft202012Validator(OPENAPI_31).is_valid(broken)


def test_every_schema_is_json_schema() -> None:
    meta.validate({"$defs": SCHEMAS})
    for path in DOCUMENT["paths"].values():
        for entry in path.values():
            for parameter in entry["parameters"]:
                meta.validate(parameter.get("schema", {}))


def test_every_component_is_referenced_and_every_reference_resolves() -> None:
    there = {
        f"#/components/{kind}/{name}"
        for kind, parts in DOCUMENT["components"].items()
        if kind != "securitySchemes"
        for name in parts
    }
    assert set(references(DOCUMENT)) == there


def test_every_operation_has_an_id_a_tag_a_summary_and_its_paths_parameters() -> None:
    entries = {name: operation_of(name) for name in ALL_OPERATIONS}
    ids = [entry["operationId"] for entry in entries.values()]
    assert len(ids) == len(set(ids))
    assert {tag for entry in entries.values() for tag in entry["tags"]} == {each["name"] for each in DOCUMENT["tags"]}
    for name, entry in entries.items():
        assert entry["summary"].strip()
        in_path = {each["name"] for each in entry["parameters"] if each.get("in") == "path"}
        assert in_path == set(ALL_OPERATIONS[name].path_ids)
        needs_plan_manager = "plan_manager" in entry.get("security", DOCUMENT["security"])[0]
        assert needs_plan_manager is not ALL_OPERATIONS[name].is_for_key


@sweep("name", sorted(CONTRACT))
def test_the_contracts_statuses_are_documented(name: str) -> None:
    responses = {int(status): each for status, each in operation_of(name)["responses"].items() if int(status) >= 400}
    contract = STATUSES[name] | {401, 429}
    assert set(responses) >= contract
    assert set(responses) - contract <= EXTRA_STATUSES
    assert {status for status, each in responses.items() if resolved(each).get(EXTENSION)} == set(responses) - contract


def test_every_endpoint_of_the_contract_has_its_statuses() -> None:
    assert set(STATUSES) == CONTRACT


def test_a_new_note_type_returns_201_and_the_rest_of_the_contract_200() -> None:
    successes = {name: [each for each in operation_of(name)["responses"] if each < "300"] for name in CONTRACT}
    assert successes == {name: ["201" if name == "POST /note-types" else "200"] for name in CONTRACT}


@sweep("name", sorted(CONTRACT))
def test_a_query_parameter_is_in_the_contract_or_marked_as_an_extension(name: str) -> None:
    found = {each["name"]: each for each in operation_of(name)["parameters"] if each.get("in") == "query"}
    contract = PARAMETERS.get(name, set())
    assert {parameter for parameter, entry in found.items() if not entry.get(EXTENSION)} == contract


def test_an_error_has_the_fields_of_the_contract_and_extensions() -> None:
    fields = SCHEMAS["Error"]["properties"]
    assert {name for name, schema in fields.items() if not schema.get(EXTENSION)} == {"success", "error", "detail"}
    assert fields["success"]["const"] is False
    assert SCHEMAS["Error"]["required"] == ["success", "error", "detail"]


def test_operations_share_the_error_responses() -> None:
    for name in ALL_OPERATIONS:
        for status, response in operation_of(name)["responses"].items():
            assert (list(response) == ["$ref"]) is (status >= "400"), (name, status)
    for response in DOCUMENT["components"]["responses"].values():
        [content] = response["content"].values()
        assert content["schema"] == {"$ref": "#/components/schemas/Error"}
        assert len({CODES[code].status for code in content["examples"]}) == 1


def test_headers_that_belong_to_a_status_are_documented() -> None:
    headers = {"401": "WWW-Authenticate", "409": "Retry-After", "415": "Accept-Encoding", "429": "Retry-After"}
    for name in ALL_OPERATIONS:
        responses = operation_of(name)["responses"]
        assert {"401", "429"} <= set(responses)
        for status in set(headers) & set(responses):
            assert headers[status] in resolved(responses[status])["headers"], name


def test_a_create_links_to_the_operations_on_the_new_resource() -> None:
    links = operation_of("POST /participants/{participant_id}/team-members")["responses"]["201"]["links"]
    assert set(links) == {"team_members_get", "team_members_update", "team_members_delete"}
    assert links["team_members_get"]["parameters"] == {
        "participant_id": "$request.path.participant_id",
        "team_member_id": "$response.body#/id",
    }


def test_every_list_and_create_links_to_existing_operations() -> None:
    by_id = {entry["operationId"]: entry for entry in map(operation_of, ALL_OPERATIONS)}
    linked = set()
    for name in ALL_OPERATIONS:
        for response in operation_of(name)["responses"].values():
            for link in response.get("links", {}).values():
                target = by_id[link["operationId"]]
                in_path = {each["name"] for each in target["parameters"] if each.get("in") == "path"}
                assert set(link["parameters"]) == in_path
                linked.add(name)
    lists = {name for name, each in ALL_OPERATIONS.items() if "Page[" in str(each.response_type)}
    creates = {name for name, each in ALL_OPERATIONS.items() if each.creates}
    assert linked == (lists | creates) - NO_LINKS


def schemas_of(name: str) -> list[dict[str, Any]]:
    """A schema, and the one that it adds to: a create is an update without the id."""
    bases = [SCHEMAS[each["$ref"].rpartition("/")[2]] for each in SCHEMAS[name].get("allOf", [])]
    return [SCHEMAS[name], *bases]


def properties_of(name: str) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for schema in reversed(schemas_of(name)):
        merged |= schema.get("properties", {})
    return merged


@sweep("name", sorted(BODIES))
def test_a_field_is_in_the_contract_or_marked_as_an_extension(name: str) -> None:
    fields = properties_of(name)
    assert {field for field, schema in fields.items() if not schema.get(EXTENSION)} == BODIES[name]


# A proposal isn't what is proposed: the response has no account number.
PROPOSALS = {"PUT /providers/{provider_id}/bank-details", "PUT /participants/{participant_id}/bank-details"}


@sweep(
    "name",
    [name for name, each in ALL_OPERATIONS.items() if each.method == "PUT" and each.body and name not in PROPOSALS],
)
def test_an_update_takes_back_what_a_get_returned(name: str) -> None:
    [body] = references(operation_of(name)["requestBody"])
    returned = list(references(operation_of(name.replace("PUT", "GET"))["responses"]["200"]["content"]))
    update = SCHEMAS[body.rpartition("/")[2]]
    for resource in (SCHEMAS[each.rpartition("/")[2]] for each in returned):
        assert set(resource["properties"]) <= set(update["properties"])
    read_only = {name for name, each in update["properties"].items() if each.get("readOnly")}
    assert read_only >= {"updated_at"}
    assert read_only.isdisjoint({"id", "email"})


def test_a_create_takes_no_id_and_ignores_its_time() -> None:
    for name in (name for name, each in ALL_OPERATIONS.items() if each.creates):
        [body] = references(operation_of(name)["requestBody"])
        schema = SCHEMAS[body.rpartition("/")[2]]
        properties = properties_of(body.rpartition("/")[2])
        assert "id" not in properties or schema["not"]["required"] == ["id"]
        times = properties.keys() & {"created_at", "updated_at"}  # a statement never changes
        assert times
        assert all(properties[each]["readOnly"] for each in times)


def test_a_create_an_update_and_an_item_share_a_schema() -> None:
    assert SCHEMAS["ProviderCreate"]["allOf"] == [{"$ref": "#/components/schemas/ProviderUpdate"}]
    assert SCHEMAS["ProviderBulk"]["properties"]["items"]["items"] == {"$ref": "#/components/schemas/ProviderUpdate"}
    validator = Draft202012Validator(
        {"components": DOCUMENT["components"], "$ref": "#/components/schemas/ProviderCreate"}
    )
    bodies = [{"entity_name": "Ironbark"}, {"id": "019a0000-0000-7000-8000-0000000000b1"}, {"other": 1}]
    assert [validator.is_valid(each) for each in bodies] == [True, False, False]


def test_every_body_of_the_contract_is_checked() -> None:
    taken = {ref for name in CONTRACT for ref in references(operation_of(name).get("requestBody", {}))}
    assert {ref.rpartition("/")[2] for ref in taken} <= set(BODIES)


@sweep("name", sorted(CONTRACT))
def test_a_body_of_the_contract_requires_what_the_contract_requires(name: str) -> None:
    for ref in references(operation_of(name).get("requestBody", {})):
        body = ref.rpartition("/")[2]
        assert SCHEMAS[body].get("required", []) == (["note_type"] if body == "NoteTypeCreate" else [])
        [*_, closed] = schemas_of(body)
        assert closed["additionalProperties"] is False
