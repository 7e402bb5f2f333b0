"""SQL for users."""

from collections.abc import Sequence
from uuid import UUID

from msgspec import Struct

from plankeeper.database.client import Executor, Transaction
from plankeeper.database.row_ids import HAS_ID


class User(Struct):
    """A user of a plan manager. The email is unique within the plan manager, ignoring case."""

    id: UUID
    email: str | None


GET_BY_EMAILS = "select id, lower(email) as email from users where plan_manager_id = $1 and lower(email) = any ($2)"


async def get_by_emails(db: Executor, plan_manager_id: UUID, emails: Sequence[str]) -> list[User]:
    """The users with one of the emails. The arguments and the results are in lower case."""
    return await db.rows(User, GET_BY_EMAILS, plan_manager_id, emails)


GET_BY_IDS_OR_EMAILS = f"""
    select id, email from users where plan_manager_id = $1 and {HAS_ID}
    union
    select id, email from users where plan_manager_id = $1 and lower(email) = any ($3)
"""


async def get_by_ids_or_emails(
    db: Executor, plan_manager_id: UUID, ids: Sequence[UUID], emails: Sequence[str]
) -> list[User]:
    """The users with one of the ids or one of the emails. The emails must be in lower case."""
    return await db.rows(User, GET_BY_IDS_OR_EMAILS, plan_manager_id, ids, emails)


UPSERT = """
    insert into users (plan_manager_id, id, email)
    select $1, id, email from json_populate_recordset(null::users, $2)
    -- A known email is never removed, because permissions require one.
    on conflict (plan_manager_id, id) do update set email = excluded.email
        where users.email is distinct from excluded.email and excluded.email is not null
"""


async def upsert(tx: Transaction, plan_manager_id: UUID, users: str) -> None:
    """Insert or update users. `users` is a JSON list of User."""
    await tx.execute(UPSERT, plan_manager_id, users)


GET_OR_CREATE = """
    insert into users (plan_manager_id, id, email) values ($1, $2, $3)
    on conflict (plan_manager_id, lower(email)) do update set email = users.email
    returning id
"""


async def get_or_create(tx: Transaction, plan_manager_id: UUID, new_id: UUID, email: str | None) -> UUID:
    """The id of the user with an email, inserted with `new_id` if there is none. Without an email always a new user."""
    return await tx.one(UUID, GET_OR_CREATE, plan_manager_id, new_id, email)
