"""The error catalogue over HTTP: every error code of the API, and every warning of invoices."""

from typing import Any

from plankeeper.core.errors import CODES
from plankeeper.resources.invoices.warnings import WARNINGS
from support.client import DOCUMENT, Client

STATUSES = {
    "invalid_request": 400, "invalid_json": 400, "missing_plan_manager_id": 400, "invalid_plan_manager_id": 400,
    "permission_requires_email": 400, "missing_api_key": 401, "invalid_api_key": 401, "expired_api_key": 401,
    "plan_manager_not_allowed": 403, "insufficient_scope": 403, "not_found": 404, "method_not_allowed": 405,
    "contact_priority_taken": 409, "team_member_exists": 409, "body_too_large": 413, "unsupported_media_type": 415,
    "exit_reason_in_use": 409, "plan_in_use": 409, "note_type_in_use": 409,
    "too_many_webhook_endpoints": 409, "webhook_endpoint_inactive": 409,
    "idempotency_in_progress": 409, "precondition_failed": 412, "idempotency_key_reused": 422,
    "rate_limit_exceeded": 429, "cursor_expired": 400, "path_not_found": 404, "internal_error": 500,
    "secret_key_missing": 503, "service_unavailable": 503, "invalid_transition": 409, "invoice_locked": 409,
    "run_outdated": 409, "second_person_required": 403,
}  # fmt: skip
WARNING_CODES = {
    "missing_invoice_number", "missing_participant", "missing_provider", "several_participants", "several_providers",
    "inactive_participant", "inactive_provider", "first_time_provider", "check_abn", "check_total", "check_gst",
    "check_dates", "possible_duplicate", "same_document", "flagged_participant", "flagged_provider",
}  # fmt: skip
LINE_CODES = {
    "not_managed", "after_death", "negative_line", "service_in_future", "too_old", "check_item_code", "unknown_item",
    "item_not_in_force", "price_above_limit", "check_funding_period", "check_budget", "line_duplicate",
}  # fmt: skip


def entries(api: Client) -> dict[str, dict[str, Any]]:
    return {each["error_code"]: each for each in api.get("/error-catalogue", limit=1000).json()["data"]}


def test_every_code_is_listed_with_its_status(api: Client) -> None:
    found = entries(api)
    assert {code: each["status"] for code, each in found.items() if each["applies_to"] == "api"} == STATUSES
    assert {code for code, each in found.items() if each["applies_to"] == "invoice"} == WARNING_CODES
    assert {code for code, each in found.items() if each["applies_to"] == "line_item"} == LINE_CODES
    assert all(found[code]["status"] is None for code in WARNINGS)


def test_an_entry_explains_its_code(api: Client) -> None:
    found = entries(api)
    assert found["not_found"] == {
        "error_code": "not_found", "applies_to": "api", "status": 404, "title": CODES["not_found"].title,
        "description": CODES["not_found"].description,
    }  # fmt: skip
    assert found["check_item_code"] == {
        "error_code": "check_item_code", "applies_to": "line_item", "status": None,
        "title": WARNINGS["check_item_code"].title, "description": WARNINGS["check_item_code"].description,
    }  # fmt: skip
    for entry in found.values():
        assert entry["title"].strip()
        assert entry["description"].endswith(".")


def test_the_openapi_document_names_the_codes_of_each_status(api: Client) -> None:
    found = entries(api)
    for response in DOCUMENT["components"]["responses"].values():
        reported = [word for word in response["description"].split("`") if word in found]
        assert reported
        assert len({found[code]["status"] for code in reported}) == 1


def test_the_list_is_ordered_by_code_in_both_modes(api: Client) -> None:
    codes = sorted(entries(api))
    total = len(codes)
    page = api.get("/error-catalogue", limit=5, offset=3).json()
    assert [each["error_code"] for each in page["data"]] == codes[3:8]
    assert page["pagination"] == {"limit": 5, "offset": 3, "has_more": True, "total": total, "next_cursor": None}
    walked: list[str] = []
    after = "0"
    while after is not None:
        page = api.get("/error-catalogue", limit=7, after=after).json()
        walked += [each["error_code"] for each in page["data"]]
        after = page["pagination"]["next_cursor"]
        more = after is not None
        assert page["pagination"] == {"limit": 7, "offset": 0, "has_more": more, "total": None, "next_cursor": after}
        assert after in (None, walked[-1])
    assert walked == codes


def test_a_cursor_may_be_an_unknown_code(api: Client) -> None:
    codes = sorted(entries(api))
    following = api.get("/error-catalogue", after="n", limit=1).json()["data"]
    assert [each["error_code"] for each in following] == [next(code for code in codes if code > "n")]
    assert api.get("/error-catalogue", after="zzz").json()["data"] == []
    assert api.get("/error-catalogue", offset=len(codes)).json()["data"] == []
