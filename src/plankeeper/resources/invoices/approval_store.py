"""SQL of the approval of invoices: who may approve them, requests, and links, of which only hashes are stored."""

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import LiteralString
from uuid import UUID

from msgspec import Struct

from plankeeper.core.json import to_json
from plankeeper.database.client import Executor, Transaction
from plankeeper.database.row_ids import in_array
from plankeeper.resources.invoices.approval_schemas import (
    DueRequest,
    LinkRecipient,
    NewLink,
    OpenedLink,
    RequestRow,
    RequestState,
    RevocationCause,
    SentLink,
)

RECENT = timedelta(days=1)  # for this time, mails about an invoice delay further ones
REQUEST_COLUMNS: LiteralString = "invoice_id, requested_at, content_hash, asked_at, reminded_at"
LINK_COLUMNS: LiteralString = "invoice_id, id, participant_id, team_member_id, content_hash, is_reminder, created_at"
IS_OPEN: LiteralString = "revoked_at is null and used_at is null"
MAY_APPROVE: LiteralString = """exists (
            select from team_member_permissions granted
            join permissions permission on permission.id = granted.permission_id
            where granted.plan_manager_id = $1 and granted.participant_id = member.participant_id
                and granted.team_member_id = member.id and permission.name = 'approve_invoices'
        )"""


def approvers_of(participant_id: LiteralString) -> LiteralString:
    """The people with an email who may approve the invoices of a participant, who hasn't died."""
    return f"""(
        select null::uuid as team_member_id, participant.email,
            nullif(concat_ws(' ', coalesce(participant.preferred_name, participant.first_name),
                participant.last_name), '') as name
        from participants participant
        where participant.plan_manager_id = $1 and participant.id = {participant_id}
            and participant.deceased_on is null and participant.email <> ''
        union all
        select member.id, users.email, nullif(concat_ws(' ', member.first_name, member.last_name), '')
        from team_members member
        join users on users.plan_manager_id = $1 and users.id = member.user_id
        join participants participant on participant.plan_manager_id = $1 and participant.id = member.participant_id
        where member.plan_manager_id = $1 and member.participant_id = {participant_id}
            and participant.deceased_on is null and users.email <> '' and {MAY_APPROVE}
    )"""


# Whether a link was sent to the email that its `person` has now.
HAS_EMAIL: LiteralString = "link.email_hash = sha256(link.token_hash || convert_to(person.email, 'UTF8'))"
# Two people with one mailbox get one mail.
LIST_STATES: LiteralString = f"""
    select invoice.id as invoice_id, invoice.participant_id, request.requested_at, request.content_hash,
        request.asked_at, request.reminded_at, exists (
            select from approval_links link
            where link.plan_manager_id = $1 and link.invoice_id = invoice.id and {IS_OPEN}
        ) as has_open_links,
        recent.count as recent_requests, recent.last_at as last_asked_at,
        coalesce((select warning_levels from office_settings where plan_manager_id = $1), '[]')::json as levels,
        coalesce((
            select json_agg(json_build_object('team_member_id', approver.team_member_id, 'name', approver.name))
            from (
                select distinct on (lower(person.email)) person.team_member_id, person.name
                from {approvers_of("invoice.participant_id")} person
                order by lower(person.email), person.team_member_id nulls first
            ) approver
        ), '[]') as approvers
    from invoices invoice
    left join lateral (
        select {REQUEST_COLUMNS} from approval_requests
        where plan_manager_id = $1 and invoice_id = invoice.id
        offset 0
    ) request on true
    cross join lateral (
        select count(distinct created_at), max(created_at) as last_at from approval_links
        where plan_manager_id = $1 and invoice_id = invoice.id and created_at > $3
        offset 0
    ) recent
    where invoice.plan_manager_id = $1 and {in_array("invoice.id", "$2::uuid[]")}
    order by invoice.id
"""


async def list_states(db: Executor, plan_manager_id: UUID, invoice_ids: Sequence[UUID]) -> list[RequestState]:
    """The requests of invoices, in order of id, and who may decide."""
    return await db.rows(RequestState, LIST_STATES, plan_manager_id, invoice_ids, datetime.now(UTC) - RECENT)


UPSERT_REQUESTS: LiteralString = f"""
    insert into approval_requests (plan_manager_id, {REQUEST_COLUMNS})
    select $1, {REQUEST_COLUMNS} from json_populate_recordset(null::approval_requests, $2)
    on conflict (plan_manager_id, invoice_id) do update set ({REQUEST_COLUMNS}) = (
        select {REQUEST_COLUMNS} from (select excluded.*) written
    )
"""


async def upsert_requests(tx: Transaction, plan_manager_id: UUID, rows: Sequence[RequestRow]) -> None:
    await tx.execute(UPSERT_REQUESTS, plan_manager_id, to_json(rows))


DELETE_REQUESTS = "delete from approval_requests where plan_manager_id = $1 and invoice_id = any ($2::uuid[])"


async def delete_requests(tx: Transaction, plan_manager_id: UUID, invoice_ids: Sequence[UUID]) -> None:
    await tx.execute(DELETE_REQUESTS, plan_manager_id, invoice_ids)


INSERT_LINKS: LiteralString = f"""
    insert into approval_links (plan_manager_id, {LINK_COLUMNS})
    select $1, {LINK_COLUMNS} from json_populate_recordset(null::approval_links, $2)
"""


async def insert_links(tx: Transaction, plan_manager_id: UUID, links: Sequence[NewLink]) -> None:
    await tx.execute(INSERT_LINKS, plan_manager_id, to_json(links))


REVOKE_LINKS: LiteralString = f"""
    update approval_links set revoked_at = $4, revoked_because = $3
    where plan_manager_id = $1 and invoice_id = any ($2::uuid[]) and {IS_OPEN}
"""


async def revoke_links(
    tx: Transaction, plan_manager_id: UUID, invoice_ids: Sequence[UUID], cause: RevocationCause, at: datetime
) -> None:
    """Revoke the links of invoices that weren't used."""
    await tx.execute(REVOKE_LINKS, plan_manager_id, invoice_ids, cause, at)


REVOKE_ALL_LINKS: LiteralString = f"""
    update approval_links set revoked_at = $2, revoked_because = 'staff' where plan_manager_id = $1 and {IS_OPEN}
"""
RESTART_REQUESTS = """
    update approval_requests set asked_at = $2, reminded_at = null where plan_manager_id = $1 and asked_at is not null
"""


async def revoke_all_links(tx: Transaction, plan_manager_id: UUID, at: datetime) -> None:
    """Revoke the links of all invoices, in a restored database: they can have been used or revoked since.

    Reminders, with new links, and approval without an answer count from this time on.
    """
    await tx.execute(REVOKE_ALL_LINKS, plan_manager_id, at)
    await tx.execute(RESTART_REQUESTS, plan_manager_id, at)


SEND_LINK: LiteralString = f"""
    update approval_links set token_hash = $4, email_hash = $5, sent_at = $6, expires_at = $7
    where plan_manager_id = $1 and invoice_id = $2 and id = $3 and {IS_OPEN}
    returning id
"""
GET_RECIPIENT: LiteralString = f"""
    select person.email, person.name, link.is_reminder, manager.name as plan_manager_name
    from approval_links link
    join plan_managers manager on manager.id = $1
    cross join lateral {approvers_of("link.participant_id")} person
    where link.plan_manager_id = $1 and link.invoice_id = $2 and link.id = $3
        and person.team_member_id is not distinct from link.team_member_id
"""


async def send_link(
    db: Executor,
    plan_manager_id: UUID,
    invoice_id: UUID,
    link_id: UUID,
    token_hash: bytes,
    at: datetime,
    expires_at: datetime,
) -> LinkRecipient | None:
    """Give an open link a new token; None if it isn't open, or if its person may not approve any more."""
    recipient = await db.one_or_none(LinkRecipient, GET_RECIPIENT, plan_manager_id, invoice_id, link_id)
    if recipient is None:
        return None
    email_hash = hashlib.sha256(token_hash + recipient.email.encode()).digest()
    values = (token_hash, email_hash, at, expires_at)
    sent = await db.one_or_none(UUID, SEND_LINK, plan_manager_id, invoice_id, link_id, *values)
    return recipient if sent else None


FIND_LINK: LiteralString = f"""
    select link.id, link.invoice_id, link.participant_id, link.team_member_id, link.content_hash, link.expires_at,
        link.revoked_at, link.revoked_because, link.used_at, person.name, manager.name as plan_manager_name
    from approval_links link
    join plan_managers manager on manager.id = $1
    cross join lateral {approvers_of("link.participant_id")} person
    where link.plan_manager_id = $1 and link.token_hash = $2 and link.expires_at > $3
        and person.team_member_id is not distinct from link.team_member_id and {HAS_EMAIL}
"""


async def find_link(db: Executor, plan_manager_id: UUID, token_hash: bytes, at: datetime) -> OpenedLink | None:
    """The unexpired link with a token, if its person may still approve, and still has the email that it was sent to."""
    return await db.one_or_none(OpenedLink, FIND_LINK, plan_manager_id, token_hash, at)


USE_LINK: LiteralString = f"""
    update approval_links set used_at = $4
    where plan_manager_id = $1 and invoice_id = $2 and id = $3 and {IS_OPEN} and expires_at > $4
    returning id
"""


async def use_link(tx: Transaction, plan_manager_id: UUID, invoice_id: UUID, link_id: UUID, at: datetime) -> bool:
    """Mark a link as used; false if it was used, was revoked or has expired."""
    return await tx.one_or_none(UUID, USE_LINK, plan_manager_id, invoice_id, link_id, at) is not None


LIST_LINKS: LiteralString = f"""
    select link.id, link.team_member_id, link.is_reminder, link.created_at, link.sent_at, link.expires_at,
        link.revoked_at, link.revoked_because, link.used_at, person.name, person.email,
        coalesce(not {HAS_EMAIL}, false) as has_other_email
    from approval_links link
    left join lateral (
        select * from {approvers_of("link.participant_id")} approver
        where approver.team_member_id is not distinct from link.team_member_id
        offset 0
    ) person on true
    where link.plan_manager_id = $1 and link.invoice_id = $2
    order by link.id desc
    limit $3
"""


async def list_newest_links(db: Executor, plan_manager_id: UUID, invoice_id: UUID, limit: int) -> list[SentLink]:
    return await db.rows(SentLink, LIST_LINKS, plan_manager_id, invoice_id, limit)


class ApproverName(Struct):
    """The name of a person who may approve, with or without an email."""

    id: UUID
    name: str | None


LIST_APPROVING_MEMBERS: LiteralString = f"""
    select member.id, nullif(concat_ws(' ', member.first_name, member.last_name), '') as name
    from team_members member
    where member.plan_manager_id = $1 and member.participant_id = $2 and {MAY_APPROVE}
    order by member.id
"""


async def list_approving_members(db: Executor, plan_manager_id: UUID, participant_id: UUID) -> list[ApproverName]:
    """The team members with `approve_invoices`."""
    return await db.rows(ApproverName, LIST_APPROVING_MEMBERS, plan_manager_id, participant_id)


GET_MEMBER_NAME = """
    select nullif(concat_ws(' ', first_name, last_name), '') as name
    from team_members where plan_manager_id = $1 and participant_id = $2 and id = $3
"""
GET_PARTICIPANT_NAME = """
    select nullif(concat_ws(' ', coalesce(preferred_name, first_name), last_name), '') as name
    from participants where plan_manager_id = $1 and id = $2
"""


async def get_name(db: Executor, plan_manager_id: UUID, participant_id: UUID, member_id: UUID | None) -> str | None:
    """The name of the participant or of a team member."""
    if member_id is None:
        return await db.one_or_none(str, GET_PARTICIPANT_NAME, plan_manager_id, participant_id)
    return await db.one_or_none(str, GET_MEMBER_NAME, plan_manager_id, participant_id, member_id)


class ApprovalDays(Struct):
    """A plan manager that sends reminders, or approves automatically."""

    plan_manager_id: UUID
    reminder_days: int | None
    automatic_days: int | None


LIST_DAYS = """
    select plan_manager_id, approval_reminder_days as reminder_days, approval_automatic_days as automatic_days
    from office_settings office
    where (approval_reminder_days is not null or approval_automatic_days is not null) and not exists (
        -- after a restore, people can have decided since the backup
        select from restores where restores.plan_manager_id = office.plan_manager_id and confirmed_at is null
    )
"""


async def list_days(db: Executor) -> list[ApprovalDays]:
    """The settings of the plan managers that use them, without those with a restore that no owner has confirmed."""
    return await db.rows(ApprovalDays, LIST_DAYS)


# What `is_ready` requires of the invoice of a request, except its lines and warnings. The look-up stays one for each
# request, in their order, because of its offset.
MAY_BE_READY: LiteralString = """exists (
        select from invoices invoice
        where invoice.plan_manager_id = $1 and invoice.id = request.invoice_id and invoice.approval_status = 'pending'
            and invoice.claim_status not in ('on_hold', 'paid', 'cancelled')
            and not invoice.is_deleted and not invoice.wont_claim
        offset 0
    )"""
LIST_TO_REMIND: LiteralString = f"""
    select invoice_id, asked_at from approval_requests request
    where plan_manager_id = $1 and asked_at <= $2 and (asked_at, invoice_id) > ($3, $4) and reminded_at is null
        and {MAY_BE_READY}
    order by asked_at, invoice_id
    limit $5
"""
# Only of requests that somebody was sent and could answer.
LIST_TO_APPROVE: LiteralString = f"""
    select invoice_id, asked_at from approval_requests request
    where plan_manager_id = $1 and asked_at <= $2 and (asked_at, invoice_id) > ($3, $4) and {MAY_BE_READY}
        and exists (
            select from approval_links link
            where link.plan_manager_id = $1 and link.invoice_id = request.invoice_id and link.sent_at is not null
                and link.revoked_at is null and link.content_hash = request.content_hash
            offset 0
        )
    order by asked_at, invoice_id
    limit $5
"""


async def list_to_remind(
    db: Executor, plan_manager_id: UUID, asked_before: datetime, after: DueRequest, limit: int
) -> list[DueRequest]:
    """The first requests after one of them, in their order."""
    place = (asked_before, after.asked_at, after.invoice_id)
    return await db.rows(DueRequest, LIST_TO_REMIND, plan_manager_id, *place, limit)


async def list_to_approve(
    db: Executor, plan_manager_id: UUID, asked_before: datetime, after: DueRequest, limit: int
) -> list[DueRequest]:
    """The first requests after one of them, in their order."""
    place = (asked_before, after.asked_at, after.invoice_id)
    return await db.rows(DueRequest, LIST_TO_APPROVE, plan_manager_id, *place, limit)
