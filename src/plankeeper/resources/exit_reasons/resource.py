"""Exit reasons as a resource."""

from plankeeper.resources.exit_reasons import store
from plankeeper.resources.exit_reasons.schemas import ExitReasonImport, ExitReasonRow
from plankeeper.resources.resource import Resource, by_uuid, invalid
from plankeeper.resources.upsert import RecordUpserter, created_or_updated

RESOURCE = Resource(
    kind="exit_reason",
    import_schema=ExitReasonImport,
    upsert=RecordUpserter(
        record_type=ExitReasonRow,
        select_for_update=store.select_for_update,
        save=store.upsert,
        event_type=created_or_updated("exit_reason"),
    ),
    export_schema=ExitReasonRow,
    export=store.export,
    tables=("exit_reasons",),
    import_errors={
        "exit_reasons_parent_id_fkey": invalid(
            parent_id="must be the id of an exit reason of this file or of this plan manager"
        )
    },
    get_many=by_uuid(store.get_many),
    lock=by_uuid(store.select_for_update),
)
