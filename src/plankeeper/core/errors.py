"""The errors of the API: the only table of their codes, statuses and descriptions.

The HTTP layer turns a DomainError into a response with an `Error` body:

    DomainError
    ├── ValidationError         400 invalid_request, with a message for each field
    ├── NotFound                404 not_found, with the kind and the id of the resource
    └── SecretKeyMissingError   503 secret_key_missing
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, NamedTuple
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from plankeeper.core.fields import EXTENSION, FieldErrorCode, component

ErrorCode = Literal[
    "invalid_request",
    "invalid_json",
    "missing_plan_manager_id",
    "invalid_plan_manager_id",
    "permission_requires_email",
    "cursor_expired",
    "missing_api_key",
    "invalid_api_key",
    "expired_api_key",
    "plan_manager_not_allowed",
    "insufficient_scope",
    "second_person_required",
    "not_found",
    "path_not_found",
    "method_not_allowed",
    "too_many_webhook_endpoints",
    "webhook_endpoint_inactive",
    "idempotency_in_progress",
    "contact_priority_taken",
    "team_member_exists",
    "exit_reason_in_use",
    "note_type_in_use",
    "plan_in_use",
    "run_outdated",
    "invalid_transition",
    "invoice_locked",
    "precondition_failed",
    "body_too_large",
    "unsupported_media_type",
    "idempotency_key_reused",
    "rate_limit_exceeded",
    "internal_error",
    "secret_key_missing",
    "service_unavailable",
]


class ErrorDefinition(NamedTuple):
    status: int
    title: str
    description: str


CODES: Mapping[ErrorCode, ErrorDefinition] = {
    "invalid_request": ErrorDefinition(
        400,
        "Invalid request",
        "A parameter or a field of the body is invalid. `errors` lists each one, with what is expected.",
    ),
    "invalid_json": ErrorDefinition(
        400,
        "Invalid JSON",
        "The body is not a JSON object in UTF-8, or is nested more than 32 levels deep.",
    ),
    "missing_plan_manager_id": ErrorDefinition(
        400,
        "Missing plan manager id",
        "The request has no X-Plan-Manager-Id header.",
    ),
    "invalid_plan_manager_id": ErrorDefinition(
        400,
        "Invalid plan manager id",
        "The X-Plan-Manager-Id header must be a single UUID with hyphens.",
    ),
    "permission_requires_email": ErrorDefinition(
        400,
        "Permission requires an email",
        "A team member without an email can only have the permission `no_access`.",
    ),
    "cursor_expired": ErrorDefinition(
        400,
        "Cursor expired",
        "`after` is not an event of this plan manager, or its event was deleted after its retention. Start with"
        " `since`, or with `after=0`.",
    ),
    "missing_api_key": ErrorDefinition(
        401,
        "Missing API key",
        "The request has no `Authorization: Bearer <API key>` header. The word `Bearer` is required.",
    ),
    "invalid_api_key": ErrorDefinition(
        401,
        "Invalid API key",
        "The Authorization header does not contain a valid API key.",
    ),
    "expired_api_key": ErrorDefinition(401, "Expired API key", "The API key has expired."),
    "plan_manager_not_allowed": ErrorDefinition(
        403,
        "Plan manager not allowed",
        "The API key has no access to the plan manager in X-Plan-Manager-Id.",
    ),
    "insufficient_scope": ErrorDefinition(
        403,
        "Insufficient scope",
        "The API key does not have the scope that the request requires.",
    ),
    "second_person_required": ErrorDefinition(
        403,
        "Second person required",
        "In this office, whoever has made a payment run or downloaded its file can't mark it as paid, or cancel it"
        " after the download. A key counts as the account that made it.",
    ),
    "not_found": ErrorDefinition(
        404,
        "Not found",
        "The plan manager has no such resource. `resource` names it.",
    ),
    "path_not_found": ErrorDefinition(
        404,
        "Path not found",
        "No endpoint has this path. A trailing slash makes a different path.",
    ),
    "method_not_allowed": ErrorDefinition(
        405,
        "Method not allowed",
        "The path does not support this method. `Allow` lists the supported methods.",
    ),
    "too_many_webhook_endpoints": ErrorDefinition(
        409,
        "Too many webhook endpoints",
        "The plan manager has reached the maximum number of webhook endpoints.",
    ),
    "webhook_endpoint_inactive": ErrorDefinition(
        409,
        "Webhook endpoint inactive",
        "The webhook endpoint is not active, so it receives no events.",
    ),
    "idempotency_in_progress": ErrorDefinition(
        409,
        "Idempotency in progress",
        "The first request with this Idempotency-Key is still running. Retry after `Retry-After` seconds.",
    ),
    "contact_priority_taken": ErrorDefinition(
        409,
        "Contact priority taken",
        "Another team member of the participant has this contact priority.",
    ),
    "team_member_exists": ErrorDefinition(
        409,
        "Team member exists",
        "The participant's team already has a member with this email.",
    ),
    "exit_reason_in_use": ErrorDefinition(
        409,
        "Exit reason in use",
        "A participant has this exit reason, or it is the category of other exit reasons.",
    ),
    "note_type_in_use": ErrorDefinition(
        409,
        "Note type in use",
        "Notes have this note type. `detail` says how many.",
    ),
    "plan_in_use": ErrorDefinition(
        409,
        "Plan in use",
        "A line of an invoice that belongs to this plan, or to a removed component of it, is claimed.",
    ),
    "run_outdated": ErrorDefinition(
        409,
        "Run outdated",
        "Since the payment run was made, an invoice was put on hold, money was reversed, or bank details have changed."
        " `detail` names the invoices and the payees. Cancel the run, and make another one.",
    ),
    "invalid_transition": ErrorDefinition(
        409,
        "Invalid transition",
        "The state of the invoice, of its line or of the claim batch doesn't allow this action. `detail` names the"
        " state.",
    ),
    "invoice_locked": ErrorDefinition(
        409,
        "Invoice locked",
        "A line of the invoice is claimed or paid. `detail` names the claim batch, the payment run or the state.",
    ),
    "precondition_failed": ErrorDefinition(
        412,
        "Precondition failed",
        "The resource is not in the state that If-Match or If-None-Match requires. Fetch it again and retry.",
    ),
    "body_too_large": ErrorDefinition(
        413, "Body too large", "The body is larger than 1 MiB, than 5 MiB in a bulk request, or than 20 MiB for a file."
    ),
    "unsupported_media_type": ErrorDefinition(
        415,
        "Unsupported media type",
        "The Content-Type of the body must be application/json in UTF-8, and the body must not be compressed. A"
        " document must be a PDF, PNG or JPEG file.",
    ),
    "idempotency_key_reused": ErrorDefinition(
        422,
        "Idempotency key reused",
        "The Idempotency-Key was used with a different request. Use a new key.",
    ),
    "rate_limit_exceeded": ErrorDefinition(
        429,
        "Rate limit exceeded",
        "The key has used its quota for this minute, or the address has sent too many invalid credentials. Retry after"
        " `Retry-After` seconds.",
    ),
    "internal_error": ErrorDefinition(
        500,
        "Internal error",
        "An unexpected error occurred, and nothing was written. Include the request id when you report it.",
    ),
    "secret_key_missing": ErrorDefinition(
        503,
        "Secret key missing",
        "The server lacks the key to encrypt or decrypt a secret. The operator must correct"
        " `PLANKEEPER_SECRET_KEY_FILE`. Nothing was written.",
    ),
    "service_unavailable": ErrorDefinition(
        503,
        "Service unavailable",
        "The server is overloaded, or its database is unavailable. Retry after `Retry-After` seconds, and retry a POST"
        " with the same Idempotency-Key: if the connection was lost during a commit, the write may have succeeded.",
    ),
}

# The sentences about the codes of single fields, as in the documentation.
FIELD_CODES: Mapping[FieldErrorCode, str] = {
    "required": "The field is missing.",
    "unknown": "There is no such field or parameter.",
    "invalid_type": "The value has another type, such as a number instead of a string.",
    "invalid_format": "The value has the right type, but isn't a date, a UUID or an email address, for example.",
    "not_allowed": "The value isn't one of those that are allowed.",
    "too_short": "A text, a list or a body has too few characters or items.",
    "too_long": "A text, a list or a body has too many characters or items.",
    "too_small": "A number is below the minimum.",
    "too_large": "A number is above the maximum.",
    "read_only": "The field can't be changed. Leave it out.",
    "not_found": "No record has this id.",
    "duplicate": "The value occurs twice in the request, or belongs to another record.",
    "inconsistent": "The value contradicts another field or another record.",
}

MAX_ERRORS = 100
UNAVAILABLE_TIME = 60  # seconds
# The page of the documentation site with a section for each code.
DOCUMENTATION_PATH = "/docs/api/errors"


ErrorLocation = Annotated[
    Literal["body", "query", "path", "header"], component("ErrorLocation", "The part of a request that is invalid.")
]


class FieldError(Struct, frozen=True):
    """The error of one parameter, of one header, or of one field of the body."""

    field: Annotated[
        str, Meta(description="The parameter, the header, or the path of the field in the body: `items[3].email`.")
    ]
    message: Annotated[str, Meta(description="What is valid. Its text can change.")]
    code: Annotated[
        Annotated[FieldErrorCode, component("FieldErrorCode", "What is wrong with a parameter or a field.")],
        Meta(description="What is wrong, for programs. `inconsistent`: it contradicts other data."),
    ] = "inconsistent"
    location: Annotated[ErrorLocation, Meta(description="`body`, `query`, `path` or `header`.")] = msgspec.field(
        default="body", name="in"
    )
    allowed: Annotated[
        list[str | int] | UnsetType, Meta(description="Only with the code `not_allowed`: the values that are valid.")
    ] = UNSET


class FieldErrorSummary(NamedTuple):
    """The errors of fields in the request log: their number, and the first ones without their messages."""

    total: int
    errors: Sequence[tuple[str, str, str]]  # location, field, code


class ErrorResource(Struct, frozen=True):
    """The resource that an error is about."""

    kind: Annotated[str, Meta(description="The kind of resource, as in events: `participant`, for example.")]
    id: Annotated[str | None, Meta(description="The id, as in the request; null if the request has none.")]


class Error(Struct):
    """The body of every error."""

    success: Annotated[bool, Meta(description="Always `false`.", extra_json_schema={"const": False})]
    error: Annotated[str, Meta(description="The code of the error, for programs.")]
    detail: Annotated[str, Meta(description="A sentence for people. Its text can change.")]
    errors: Annotated[
        list[FieldError] | UnsetType,
        EXTENSION,
        Meta(description="Only with `invalid_request`: each invalid field, and what is valid; at most 100."),
    ] = UNSET
    errors_total: Annotated[
        int | UnsetType, EXTENSION, Meta(description="Only with `errors`: the number of all errors.")
    ] = UNSET
    resource: Annotated[
        ErrorResource | UnsetType,
        EXTENSION,
        Meta(description="With `not_found`: the missing resource. With most conflicts: the resource in conflict."),
    ] = UNSET
    request_id: Annotated[
        str | UnsetType,
        EXTENSION,
        Meta(description="The request id, also in the `X-Request-Id` header. Include it when you contact support."),
    ] = UNSET
    documentation_url: Annotated[
        str | UnsetType,
        EXTENSION,
        Meta(
            description="The section about this code in the documentation: a path on the server, or a URL if the"
            " operator has set `PLANKEEPER_PUBLIC_URL`."
        ),
    ] = UNSET


class DomainError(Exception):
    """An error of the table. The same request can succeed after `retry_after` seconds.

    Without them, a `service_unavailable` can after a minute: it lasts until an operator has done something.
    """

    def __init__(
        self,
        code: ErrorCode,
        detail: str | None = None,
        *,
        errors: Sequence[FieldError] = (),
        resource: ErrorResource | None = None,
        retry_after: int | None = None,
    ) -> None:
        self.code: ErrorCode = code
        self.status = CODES[code].status
        self.detail = detail or CODES[code].description
        self.errors = errors
        self.resource = resource
        self.retry_after = UNAVAILABLE_TIME if retry_after is None and code == "service_unavailable" else retry_after
        super().__init__(f"{code}: {self.detail}")

    def body(self, request_id: str, public_url: str | None = None) -> Error:
        """The body. Without a public URL, `documentation_url` is a path on this server."""
        return Error(
            success=False,
            error=self.code,
            detail=self.detail,
            errors=[*self.errors[:MAX_ERRORS]] or UNSET,
            errors_total=len(self.errors) or UNSET,
            resource=self.resource or UNSET,
            request_id=request_id,
            documentation_url=f"{public_url or ''}{DOCUMENTATION_PATH}#{self.code}",
        )


class ValidationError(DomainError):
    """One or more fields are invalid: `ValidationError(email="must ...")`, with the code `inconsistent`."""

    def __init__(self, *field_errors: FieldError, **messages: str) -> None:
        errors = [*field_errors, *(FieldError(name, message) for name, message in messages.items())]
        shown = [f"{each.field}: {each.message}" for each in errors[:3]]
        more = [f"and {len(errors) - 3:,} more"] if len(errors) > 3 else []
        detail = "; ".join(shown + more)
        super().__init__("invalid_request", detail if detail.endswith("?") else f"{detail}.", errors=errors)


def invalid_parameter(name: str, message: str, code: FieldErrorCode) -> ValidationError:
    """The error of a query parameter."""
    return ValidationError(FieldError(name, message, code, location="query"))


class NotFound(DomainError):  # noqa: N818 - the name that the field uses
    """The plan manager has no such resource. By default, the resource is that of the path."""

    def __init__(self, resource: ErrorResource | None = None, detail: str | None = None) -> None:
        super().__init__("not_found", detail, resource=resource)


class SecretKeyMissingError(DomainError):
    """There is no key to encrypt a secret with, or a stored one is encrypted with an unknown key."""

    def __init__(self, detail: str) -> None:
        super().__init__("secret_key_missing", detail, retry_after=60)


# The reasons for rejecting a request with a known key before it belonged to a plan manager. The response about a
# revoked key has the code `invalid_api_key`, so it doesn't reveal that the key ever existed.
RejectionReason = ErrorCode | Literal["revoked_api_key"]


class RejectedKeyError(DomainError):
    """A known key that is no longer valid. Only the console shows the reason."""

    def __init__(self, code: ErrorCode, key_id: UUID, reason: RejectionReason) -> None:
        super().__init__(code)
        self.rejected_key = key_id, reason
