"""Examples of webhook messages: those of the OpenAPI document, which a test sends to an endpoint."""

from typing import Any

from plankeeper.core.examples import EXAMPLES

_RESPONSES = EXAMPLES["responses"]
# Objects of other kinds have only an id.
_OBJECTS: dict[str, dict[str, Any]] = {
    "claim_batch": _RESPONSES["ClaimBatchPage"]["data"][0],
    "exit_reason": _RESPONSES["ExitReason"],
    "invoice": _RESPONSES["Invoice"],
    "invoice_view_session": _RESPONSES["InvoiceViewSessionPage"]["data"][0],
    "note": _RESPONSES["NotePage"]["data"][0],
    "note_type": _RESPONSES["NoteTypePage"]["data"][0],
    "participant": _RESPONSES["ParticipantPage"]["data"][0],
    "payment_run": _RESPONSES["PaymentRunPage"]["data"][0],
    "plan": _RESPONSES["PlanPage"]["data"][0],
    "provider": _RESPONSES["ProviderPage"]["data"][0],
    "statement": _RESPONSES["StatementSummaryPage"]["data"][0],
    "statement_run": _RESPONSES["StatementRunPage"]["data"][0],
    "team_member": _RESPONSES["TeamMemberPage"]["data"][0],
    "webhook_endpoint": _RESPONSES["WebhookEndpointPage"]["data"][0],
}
# After these, a message contains only the id of the resource.
_ONLY_ID_VERBS = {"erased", "purged", "hold_placed", "hold_released"}

PLAN_MANAGER_ID: str = _RESPONSES["CurrentApiKey"]["plan_managers"][0]["id"]


def example_object(kind: str) -> dict[str, Any]:
    """A resource of a kind."""
    ids = EXAMPLES["path_ids"]
    return _OBJECTS.get(kind) or {"id": ids.get(f"{kind}_id", ids["event_id"])}


def example_resource(kind: str) -> dict[str, Any]:
    """The `resource` of a message about `example_object`."""
    example = example_object(kind)
    resource = {"kind": kind, "id": str(example["id"])}
    is_part = kind in ("plan", "team_member", "statement")
    return resource | ({"participant_id": example["participant_id"]} if is_part else {})


def example_change(event_type: str) -> dict[str, Any]:
    """`object` and `previous` of a full message about an event of a type."""
    kind, _, verb = event_type.partition(".")
    example = example_object(kind)
    if verb == "deleted":
        return {"object": None, "previous": example}
    if verb in _ONLY_ID_VERBS:
        return {"object": {"id": example["id"]}, "previous": None}
    return {"object": example, "previous": {} if verb == "updated" else None}
