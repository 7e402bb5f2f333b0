"""The state of the PostgreSQL server: limits, sizes, folders."""

from datetime import datetime

from msgspec import Struct

from plankeeper.database.client import Executor, Transaction


class ServerState(Struct):
    """The state of the server that is visible to the role."""

    connection_limit: int  # for this role and database, without what is reserved for superusers
    connections: int
    database_bytes: int
    data_directory: str | None


GET_SERVER_STATE = """
    select least(
            current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
                - coalesce(current_setting('reserved_connections', true)::int, 0),
            nullif((select rolconnlimit from pg_roles where rolname = current_user), -1),
            nullif((select datconnlimit from pg_database where datname = current_database()), -1)
        ) as connection_limit,
        (select sum(numbackends) from pg_stat_database)::int as connections,
        pg_database_size(current_database()) as database_bytes,
        case when pg_has_role(current_user, 'pg_read_all_settings', 'usage')
            then current_setting('data_directory', true) end as data_directory
"""


async def get_server_state(db: Executor) -> ServerState:
    return await db.one(ServerState, GET_SERVER_STATE)


COUNT_SESSIONS = """
    select count(*) from pg_stat_activity where datname = current_database() and application_name = 'plankeeper'
"""


async def count_sessions(db: Executor) -> int:
    """The number of connections of Plankeeper's servers and commands to the database."""
    return await db.one(int, COUNT_SESSIONS)


ANALYZE = "analyze"


async def analyze_all(tx: Transaction) -> None:
    """Update the planner's statistics of all tables that the role owns."""
    await tx.execute(ANALYZE)


class TransactionIds(Struct):
    """Transaction ids of the server or a node of Citus.

    All transactions before `oldest_open` have ended. At `sampled_at`, `next_id` had not been assigned.
    """

    node: int
    sampled_at: datetime
    oldest_open: int
    next_id: int


# The statement takes an id: the end of a snapshot is the id after the last one that has ended, and transactions with
# that id and later ones may be open. `statement_timestamp()` precedes the snapshot, which precedes the id.
GET_TRANSACTION_IDS = """
    select 0 as node, statement_timestamp() as sampled_at,
        pg_snapshot_xmin(snapshot)::text::bigint as oldest_open, pg_current_xact_id()::text::bigint as next_id
    from pg_current_snapshot() snapshot
"""


async def get_transaction_ids(db: Executor) -> TransactionIds:
    """The transaction ids of all databases and roles, and of prepared transactions."""
    return await db.one(TransactionIds, GET_TRANSACTION_IDS)
