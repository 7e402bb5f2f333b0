"""Account managers as a resource."""

from uuid import UUID

from plankeeper.resources.account_managers import imports, service, store
from plankeeper.resources.account_managers.schemas import AccountManagerImport, AccountManagerRow, AccountManagerUpdate
from plankeeper.resources.resource import Resource, by_uuid, invalid

RESOURCE = Resource(
    kind="account_manager",
    import_schema=AccountManagerImport,
    upsert=imports.upsert,
    export_schema=AccountManagerRow,
    export=store.export,
    tables=("account_managers", "users"),
    import_errors={"users_email_key": invalid(email="is already used by another user of this plan manager")},
    get_many=by_uuid(store.get_rows),
    is_hidden=service.is_hidden,
    lock=by_uuid(store.select_for_update),
    computed=frozenset({"name", "updated_at"}),
    update_schema=AccountManagerUpdate,
    update=lambda ctx, key, change: service.update(ctx, UUID(key), change),
)
