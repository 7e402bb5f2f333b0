"""Invoice view sessions as a resource."""

from typing import Any

from msgspec import Struct

from plankeeper.resources.invoice_view_sessions import store
from plankeeper.resources.invoice_view_sessions.schemas import InvoiceViewSessionImport, InvoiceViewSessionRecord
from plankeeper.resources.resource import Resource, by_uuid
from plankeeper.resources.upsert import RecordUpserter


def _defaults(values: InvoiceViewSessionImport) -> dict[str, Any]:
    return {"last_heartbeat": values.session_started, "created_at": values.session_started}


def _event_type(_before: Struct | None, after: Any) -> str:
    return f"invoice_view_session.{'started' if after.session_ended is None else 'ended'}"


RESOURCE = Resource(
    kind="invoice_view_session",
    import_schema=InvoiceViewSessionImport,
    upsert=RecordUpserter(
        record_type=InvoiceViewSessionRecord,
        select_for_update=store.select_for_update,
        save=store.upsert,
        event_type=_event_type,
        defaults=_defaults,
    ),
    export_schema=InvoiceViewSessionRecord,
    export=store.export,
    tables=("invoice_view_sessions",),
    get_many=by_uuid(store.get_many),
    lock=by_uuid(store.select_for_update),
)
