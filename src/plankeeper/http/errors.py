"""The one source of the API's errors: every code, its status and its meaning.

A handler raises an ApiError; the edge answers it in the one shape:

    ApiError
    ├── ValidationError    400 invalid_request, with what is wrong field by field
    └── NotFound           404
"""

from collections.abc import Mapping
from typing import Annotated, NamedTuple

from msgspec import UNSET, Struct, UnsetType

from plankeeper.http.schemas import EXTENSION


class ErrorCode(NamedTuple):
    status: int
    title: str
    description: str


CODES: Mapping[str, ErrorCode] = {
    "invalid_request": ErrorCode(
        400,
        "Invalid request",
        "A parameter or a member of the body is not as documented. `errors` names each, and what would be right.",
    ),
    "invalid_json": ErrorCode(
        400,
        "Invalid JSON",
        "The body is not a JSON object in UTF-8, or is nested more than 32 levels deep.",
    ),
    "missing_plan_manager_id": ErrorCode(
        400,
        "Missing plan manager id",
        "The request has no X-Plan-Manager-Id header.",
    ),
    "invalid_plan_manager_id": ErrorCode(
        400,
        "Invalid plan manager id",
        "The X-Plan-Manager-Id header is not one UUID with its hyphens.",
    ),
    "permission_requires_email": ErrorCode(
        400,
        "Permission requires an email",
        "A team member without an email can hold no permission but no_access.",
    ),
    "missing_api_key": ErrorCode(
        401,
        "Missing API key",
        "The request has no `Authorization: Bearer <API key>` header.",
    ),
    "invalid_api_key": ErrorCode(
        401,
        "Invalid API key",
        "The Authorization header does not carry an API key that is in use.",
    ),
    "expired_api_key": ErrorCode(401, "Expired API key", "The API key was right, and its time has run out."),
    "plan_manager_not_allowed": ErrorCode(
        403,
        "Plan manager not allowed",
        "The API key may not act for the plan manager in X-Plan-Manager-Id.",
    ),
    "insufficient_scope": ErrorCode(
        403,
        "Insufficient scope",
        "The API key lacks the scope that the request needs.",
    ),
    "not_found": ErrorCode(
        404,
        "Not found",
        "There is no such path, or no such resource for this plan manager.",
    ),
    "method_not_allowed": ErrorCode(
        405,
        "Method not allowed",
        "The path does not take this method; `Allow` names those that it takes.",
    ),
    "too_many_webhook_endpoints": ErrorCode(
        409,
        "Too many webhook endpoints",
        "The plan manager has as many webhook endpoints as the server allows.",
    ),
    "webhook_endpoint_inactive": ErrorCode(
        409,
        "Webhook endpoint inactive",
        "The webhook endpoint is not active, so nothing is sent to it.",
    ),
    "idempotency_in_progress": ErrorCode(
        409,
        "Idempotency in progress",
        "The first request with this Idempotency-Key is still running. Try again after `Retry-After` seconds.",
    ),
    "contact_priority_taken": ErrorCode(
        409,
        "Contact priority taken",
        "Another team member of the participant holds this contact priority.",
    ),
    "team_member_exists": ErrorCode(
        409,
        "Team member exists",
        "A team member with this email is on the participant's team already.",
    ),
    "precondition_failed": ErrorCode(
        412,
        "Precondition failed",
        "The resource is no longer what If-Match says; get it anew, and decide again.",
    ),
    "body_too_large": ErrorCode(413, "Body too large", "The body is larger than 1 MiB."),
    "unsupported_media_type": ErrorCode(
        415,
        "Unsupported media type",
        "The body's Content-Type is not application/json in UTF-8.",
    ),
    "idempotency_key_reused": ErrorCode(
        422,
        "Idempotency key reused",
        "The Idempotency-Key came with another request before; take a new one.",
    ),
    "rate_limit_exceeded": ErrorCode(
        429,
        "Rate limit exceeded",
        "The key has used up its requests of this minute, or the address has sent too many bad credentials. Try again"
        " after `Retry-After` seconds.",
    ),
    "internal_error": ErrorCode(
        500,
        "Internal error",
        "Something went wrong on the server; nothing was written. Quote the request id.",
    ),
    "service_unavailable": ErrorCode(
        503,
        "Service unavailable",
        "The server is too busy, or its database does not answer just now. Try again after `Retry-After` seconds, a"
        " POST with its Idempotency-Key: if the database was lost during a commit, the write may have been done.",
    ),
}


MAX_ERRORS = 100


class FieldError(Struct, frozen=True):
    """What is wrong with one parameter or one member of the body."""

    field: str
    message: str


class Error(Struct):
    """The body of every error."""

    success: bool
    error: str
    detail: str
    errors: Annotated[list[FieldError] | UnsetType, EXTENSION] = UNSET
    request_id: Annotated[str | UnsetType, EXTENSION] = UNSET


class ApiError(Exception):
    """A request is answered with an error of the catalogue; `headers` are added to the answer."""

    def __init__(
        self,
        code: str,
        detail: str | None = None,
        *,
        errors: list[FieldError] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.code = code
        self.status = CODES[code].status
        self.detail = detail or CODES[code].description
        self.errors = errors
        self.headers = headers or {}
        super().__init__(f"{code}: {self.detail}")

    def body(self, request_id: str) -> Error:
        return Error(
            success=False,
            error=self.code,
            detail=self.detail,
            errors=self.errors or UNSET,
            request_id=request_id,
        )


class ValidationError(ApiError):
    """One or more fields are wrong: `ValidationError(email="must ...")`. Of more than 100 faults the first 100 are told."""

    def __init__(self, *field_errors: FieldError, **messages: str) -> None:
        errors = [*field_errors, *(FieldError(name, message) for name, message in messages.items())]
        detail = "; ".join(f"{each.field}: {each.message}" for each in errors[:3])
        more = f"; and {len(errors) - 3} more" if len(errors) > 3 else ""
        super().__init__("invalid_request", f"{detail}{more}.", errors=errors[:MAX_ERRORS])


class NotFound(ApiError):  # noqa: N818 - the name that the field uses
    def __init__(self) -> None:
        super().__init__("not_found")
