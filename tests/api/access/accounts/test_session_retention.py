"""Sessions that ended long ago are deleted, also those of people who don't come back."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from plankeeper.access.accounts.sessions import SessionRetention
from support.accounts import AccountDriver
from support.server import RunningServer

NEW_SESSION = """
    insert into account_sessions (token_hash, account_id, created_at, last_seen_at, expires_at, address, user_agent,
        two_factor_pending, with_password, provider_ids)
    values ($1, $2, $3, $3, $4, '', '', false, true, '{}')
"""
RETENTION = timedelta(days=3)
MARGIN = timedelta(minutes=5)


def insert_session(
    server: RunningServer, account_id: object, token: bytes, used: timedelta, expired: timedelta
) -> None:
    now = datetime.now(UTC)
    server.run(server.db.execute(NEW_SESSION, token, account_id, now - used, now - expired))


def kept(server: RunningServer, account_id: object) -> list[bytes]:
    statement = "select token_hash from account_sessions where account_id = $1 order by token_hash"
    return server.run(server.db.rows(bytes, statement, account_id))


def test_sessions_are_deleted_days_after_their_end(server: RunningServer, plan_manager_id: UUID) -> None:
    id_ = AccountDriver(server, plan_manager_id).id
    insert_session(server, id_, b"expired", timedelta(0), RETENTION - MARGIN)
    insert_session(server, id_, b"expired long ago", timedelta(0), RETENTION + MARGIN)
    insert_session(server, id_, b"in use", timedelta(0), -MARGIN)
    insert_session(server, id_, b"unused for long", RETENTION + MARGIN, -MARGIN)
    server.run(SessionRetention(RETENTION.days)(server.db))
    assert kept(server, id_) == [b"expired", b"in use"]


def test_sessions_are_purged_once_a_minute(server: RunningServer, plan_manager_id: UUID) -> None:
    id_ = AccountDriver(server, plan_manager_id).id
    retention = SessionRetention(RETENTION.days)
    server.run(retention(server.db))
    insert_session(server, id_, b"expired long ago", timedelta(0), RETENTION + MARGIN)
    server.run(retention(server.db))
    assert kept(server, id_) == [b"expired long ago"]
    server.run(SessionRetention(RETENTION.days)(server.db))
    assert kept(server, id_) == []
