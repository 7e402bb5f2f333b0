"""Errors have one shape and one source, the catalogue."""

import ast
from collections.abc import Iterator
from typing import Any, get_args

from msgspec import Meta, Struct
from msgspec.structs import fields

from contract.operations import OPERATIONS
from contract.sources import Module, modules
from plankeeper.core.errors import (
    CODES,
    DomainError,
    ErrorCode,
    NotFound,
    ValidationError,
)
from plankeeper.resources.error_catalogue.routes import ENTRIES
from plankeeper.resources.invoices.warnings import WARNINGS
from plankeeper.resources.registry import RESOURCES

# The codes and statuses that were decided (decisions, section 8).
EXPECTED_CODES = {
    400: {
        "invalid_request", "invalid_json", "missing_plan_manager_id", "invalid_plan_manager_id",
        "permission_requires_email", "cursor_expired",
    },
    401: {"missing_api_key", "invalid_api_key", "expired_api_key"},
    403: {"plan_manager_not_allowed", "insufficient_scope", "second_person_required"},
    404: {"not_found", "path_not_found"}, 405: {"method_not_allowed"}, 413: {"body_too_large"},
    415: {"unsupported_media_type"},
    409: {
        "exit_reason_in_use",
        "contact_priority_taken", "team_member_exists", "idempotency_in_progress", "plan_in_use", "note_type_in_use",
        "too_many_webhook_endpoints", "webhook_endpoint_inactive", "invalid_transition", "invoice_locked",
        "run_outdated",
    },
    412: {"precondition_failed"}, 422: {"idempotency_key_reused"}, 429: {"rate_limit_exceeded"},
    500: {"internal_error"}, 503: {"secret_key_missing", "service_unavailable"},
}  # fmt: skip

# What takes the code of an error as its first argument, besides DomainError itself.
RAISING = {"DomainError", "HttpError", "RejectedKeyError"}


def is_super_init(called: ast.Attribute) -> bool:
    return called.attr == "__init__" and ast.unparse(called) == "super().__init__"


def calls_in(module: Module) -> Iterator[tuple[str, ast.Call]]:
    """Each call of a plain name or of `super().__init__`, with that name."""
    for node in module.nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.func.id, node
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and is_super_init(node.func):
            yield "super", node


def raised_codes() -> dict[str, set[str]]:
    """Every code that the source raises, with the modules that do; a code that is no literal is `?`."""
    codes: dict[str, set[str]] = {}
    for module in modules():
        for name, call in calls_in(module):
            if name in RAISING or (name == "super" and module.name == "core.errors"):
                code = call.args[0] if call.args else None
                literal = code.value if isinstance(code, ast.Constant) else "?"
                codes.setdefault(str(literal), set()).add(module.name)
    return codes


def test_the_catalogue_has_exactly_the_expected_codes() -> None:
    decided = {code: status for status, codes in EXPECTED_CODES.items() for code in codes}
    assert {code: each.status for code, each in CODES.items()} == decided


def test_raised_codes_and_catalogue_codes_are_the_same() -> None:
    codes = raised_codes()
    # A class passes its code on, and DomainError its message to Exception. The examples of the document have all codes.
    assert codes.pop("?") == {"core.errors", "http.openapi.document"}
    assert set(codes) == set(CODES)


def test_error_responses_are_built_in_one_place() -> None:
    making = {module.name for module in modules() for name, _ in calls_in(module) if name == "Error"}
    assert making == {"core.errors"}


def test_an_error_has_one_shape() -> None:
    for refusal in (DomainError("not_found"), NotFound()):
        body = refusal.body("1")
        assert (body.success, body.error, body.detail) == (False, "not_found", CODES["not_found"].description)
    invalid = ValidationError(email="must be an email address").body("1")
    assert (invalid.error, invalid.detail) == ("invalid_request", "email: must be an email address.")
    assert isinstance(invalid.errors, list)
    assert [(each.field, each.message) for each in invalid.errors] == [("email", "must be an email address")]


def test_the_catalogue_explains_every_error_and_every_warning_once() -> None:
    explained = [(each.error_code, each.applies_to == "api", each.status) for each in ENTRIES]
    errors = [(code, True, each.status) for code, each in CODES.items()]
    assert sorted(explained, key=str) == sorted([*errors, *((code, False, None) for code in WARNINGS)], key=str)
    assert all(each.title and each.description for each in ENTRIES)
    assert not set(CODES) & set(WARNINGS)


def test_every_error_code_of_the_type_is_in_the_table() -> None:
    assert get_args(ErrorCode) == tuple(CODES)


def patterns_within(kind: Any) -> Iterator[Meta]:
    """The annotations with a pattern in a type, however deep."""
    if isinstance(kind, type) and issubclass(kind, Struct):
        for field in fields(kind):
            yield from patterns_within(field.type)
    for part in get_args(kind):
        if isinstance(part, Meta):
            yield from [part] if part.pattern else []
        else:
            yield from patterns_within(part)


def test_every_pattern_has_its_own_message() -> None:
    types = [each for operation in OPERATIONS.values() for each in (operation.query, operation.body) if each]
    types += [each.import_schema for each in RESOURCES.values()]
    patterns = [meta for kind in types for meta in patterns_within(kind)]
    assert len({meta.pattern for meta in patterns}) >= 6
    for meta in patterns:
        assert (meta.extra or {})["message"].startswith("must "), meta.pattern
