"""What PostgreSQL reports about itself: limits, sizes, folders."""

from msgspec import Struct

from plankeeper.database.client import Executor, Transaction


class ServerState(Struct):
    """The state of the server, as far as the role may know it."""

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


ANALYZE = "analyze"


async def analyze_all(tx: Transaction) -> None:
    """Update the planner's statistics of all tables that the role owns."""
    await tx.execute(ANALYZE)
