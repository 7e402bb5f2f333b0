"""Sends queued mails. Every API worker does so, and each mail is claimed by one of them."""

import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Union

import msgspec
from msgspec import Struct

from plankeeper.core.metrics import MAIL_ATTEMPTS
from plankeeper.core.setting_parsers import SmtpServer
from plankeeper.core.settings import Settings
from plankeeper.database.client import Database, Executor
from plankeeper.database.errors import is_unavailable
from plankeeper.mail import client, messages, store
from plankeeper.mail.retry_policy import retry_delay
from plankeeper.mail.store import MailOutcomes, MailResult, MailWriters, OutgoingMail

log = logging.getLogger("plankeeper")

POLL_INTERVAL = 1.0  # seconds between two polls when no mail is due
NO_OUTCOMES: MailOutcomes = {}
DRAIN_TIMEOUT = 5.0  # seconds that a stopping worker waits for the mail in progress


def utc_now() -> datetime:
    return datetime.now(UTC)


class MailSender:
    """Claims mails, writes them, sends them, and deletes them. Tests replace `clock`."""

    def __init__(
        self,
        db: Database,
        settings: Settings,
        server: SmtpServer,
        writers: MailWriters,
        clock: Callable[[], datetime] = utc_now,
        outcomes: MailOutcomes = NO_OUTCOMES,
    ) -> None:
        self._db, self._settings, self._server, self._writers, self._clock = db, settings, server, writers, clock
        self._outcomes = outcomes
        self._decoder: msgspec.json.Decoder[Struct] = msgspec.json.Decoder(Union[tuple(writers)])  # noqa: UP007 - computed

    async def run(self) -> None:
        """Send mails until cancelled. Retries while the database or the mail server is unavailable."""
        while True:
            sending = asyncio.create_task(self.send_next())
            is_more_due = False
            try:
                is_more_due = await asyncio.shield(sending)
            except asyncio.CancelledError:
                # Let it finish: a mail that was sent, but isn't deleted, would be sent again.
                await asyncio.wait([sending], timeout=DRAIN_TIMEOUT)
                if sending.done() and not sending.cancelled():
                    sending.exception()  # marks the exception as retrieved: asyncio logs it otherwise
                raise
            except Exception as error:
                if not is_unavailable(error):
                    log.exception("cannot process outgoing mails")
            if not is_more_due:
                await asyncio.sleep(POLL_INTERVAL)

    async def send_next(self) -> bool:
        """Try to send the next due mail. False if none is due."""
        mail = await store.claim_due(self._db, self._clock())
        if mail is None:
            return False
        content = self._decoder.decode(mail.content)
        try:
            written = await self._writers[type(content)](self._db, self._settings, content, self._clock())
        except client.MailError as error:
            await self._handle_failure(mail, content, error)
            return True
        if written is None:
            await self._end(mail, content, MailResult(self._clock()))
            return True
        try:
            message = messages.build_message(self._settings, *written, self._clock())
            await client.run_in_thread(partial(client.send, self._server, message))
        except (client.MailError, ValueError) as error:
            await self._handle_failure(mail, content, error)
        else:
            MAIL_ATTEMPTS.labels("sent").inc()
            await self._end(mail, content, MailResult(self._clock(), written.recipient))
        return True

    async def _handle_failure(self, mail: OutgoingMail, content: Struct, error: Exception) -> None:
        """Log the failure without the server's reply, which can contain an address."""
        fields = {"mail": content.__struct_config__.tag, "attempt": mail.attempt_count}
        if isinstance(error, client.MailError):
            fields["reason"] = error.reason
        if isinstance(error, client.MailError) and not error.is_permanent:
            MAIL_ATTEMPTS.labels("postponed").inc()
            log.warning("cannot send a mail yet", extra=fields, exc_info=error)
            await store.postpone(self._db, mail, self._clock() + retry_delay(mail.attempt_count))
        else:
            MAIL_ATTEMPTS.labels("failed").inc()
            log.warning("cannot send a mail", extra=fields, exc_info=error)
            reason = error.reason if isinstance(error, client.MailError) else str(error)
            await self._end(mail, content, MailResult(self._clock(), error=reason))

    async def _end(self, mail: OutgoingMail, content: Struct, result: MailResult) -> None:
        """Delete a mail, and record what became of it if its kind asks for that."""
        record = self._outcomes.get(type(content))
        if record is None:
            await store.delete(self._db, mail.id)
            return
        async with self._db.transaction() as tx:
            await record(tx, self._settings, content, result)
            await store.delete(tx, mail.id)


async def purge(session: Executor) -> None:
    """Delete expired mails."""
    expired_count = await store.purge(session, utc_now())
    if expired_count:
        MAIL_ATTEMPTS.labels("failed").inc(expired_count)
        log.warning("mails could not be sent in time, and were deleted", extra={"mails": expired_count})
