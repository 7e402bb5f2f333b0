"""What a payment has paid for, and the address of its remittance advice, in SQL."""

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import LiteralString
from uuid import UUID

from msgspec import Struct

from plankeeper.core.lists import PageRows, cut_page
from plankeeper.database.client import Executor
from plankeeper.database.row_ids import in_array
from plankeeper.resources.bank_details.accounts import PayeeKind


class PaidPayment(Struct):
    """A payment with the names around it. `email` is null where no remittance advice is sent."""

    payee_name: str
    account_ending: str
    reference: str
    amount: Decimal
    paid_on: date | None
    office: str
    office_abn: str | None
    email: str | None


class PaidLine(Struct):
    """What a payment has paid for a line, in dollars."""

    invoice_id: UUID
    line_id: UUID
    amount: Decimal


class InvoicedPerson(Struct):
    """The participant of an invoice."""

    invoice_id: UUID
    name: str


GET_PAYMENT = """
    select payment.payee_name, payment.account_ending, payment.reference, payment.amount, run.paid_on,
        plan_manager.name as office, settings.abn as office_abn, (
            select provider.remittance_email from providers provider
            where provider.plan_manager_id = $1 and provider.id = payment.payee_id
                and payment.payee_kind = 'provider'
        ) as email
    from payments payment
    join payment_runs run on run.plan_manager_id = $1 and run.id = payment.run_id
    join plan_managers plan_manager on plan_manager.id = $1
    left join office_settings settings on settings.plan_manager_id = $1
    where payment.plan_manager_id = $1 and payment.id = $2
"""


async def get_payment(db: Executor, plan_manager_id: UUID, payment_id: UUID) -> PaidPayment | None:
    return await db.one_or_none(PaidPayment, GET_PAYMENT, plan_manager_id, payment_id)


LIST_LINES = """
    select invoice_id, line_id, amount
    from payment_lines
    where plan_manager_id = $1 and payment_id = $2
    order by invoice_id, line_id, claim_id
"""


async def list_lines(db: Executor, plan_manager_id: UUID, payment_id: UUID) -> list[PaidLine]:
    """What a payment has paid for, in order of invoice and line."""
    return await db.rows(PaidLine, LIST_LINES, plan_manager_id, payment_id)


LIST_PEOPLE = f"""
    select invoice.id as invoice_id, person.name
    from invoices invoice
    cross join lateral (
        select concat_ws(' ', first_name, last_name) as name
        from participants
        where plan_manager_id = $1 and id = invoice.participant_id
        offset 0
    ) person
    where invoice.plan_manager_id = $1 and {in_array("invoice.id", "$2::uuid[]")}
    order by invoice.id
"""


async def list_people(db: Executor, plan_manager_id: UUID, invoice_ids: Sequence[UUID]) -> list[InvoicedPerson]:
    """The participants of invoices, without those that were deleted."""
    return await db.rows(InvoicedPerson, LIST_PEOPLE, plan_manager_id, invoice_ids)


LIST_WITH_EMAIL = """
    select payment.id
    from payments payment
    join providers provider on provider.plan_manager_id = $1 and provider.id = payment.payee_id
    where payment.plan_manager_id = $1 and payment.run_id = $2 and payment.payee_kind = 'provider'
        and provider.remittance_email is not null
    order by payment.id
"""


async def list_with_email(db: Executor, plan_manager_id: UUID, run_id: UUID) -> list[UUID]:
    """The payments of a run whose payees get a remittance advice by mail."""
    return await db.rows(UUID, LIST_WITH_EMAIL, plan_manager_id, run_id)


WERE_MAILED = "select advices_mailed from payment_runs where plan_manager_id = $1 and id = $2"


async def were_mailed(db: Executor, plan_manager_id: UUID, run_id: UUID) -> bool:
    """Whether mails to the payees with an email were queued when the run was marked as paid."""
    return await db.one(bool, WERE_MAILED, plan_manager_id, run_id)


class PrintedAdvice(Struct):
    """A payment whose remittance advice is to be printed."""

    id: UUID
    position: int
    payee_kind: PayeeKind
    payee_id: UUID
    payee_name: str
    reference: str
    amount: Decimal


WITHOUT_EMAIL: LiteralString = """
    from payments
    where plan_manager_id = $1 and run_id = $2 and not (payee_kind = 'provider' and exists (
        select from providers provider
        where provider.plan_manager_id = $1 and provider.id = payments.payee_id
            and provider.remittance_email is not null
    ))
"""
# The ids of a run's payments are in the order of the file.
LIST_WITHOUT_EMAIL: LiteralString = f"""
    select id, position, payee_kind, payee_id, payee_name, reference, amount {WITHOUT_EMAIL} and id > $3
    order by id
    limit $4
"""
LIST_ALL = """
    select id, position, payee_kind, payee_id, payee_name, reference, amount
    from payments
    where plan_manager_id = $1 and run_id = $2 and id > $3
    order by id
    limit $4
"""


async def list_to_print(
    db: Executor, plan_manager_id: UUID, run_id: UUID, after: UUID, limit: int, *, is_of_all: bool
) -> PageRows[PrintedAdvice]:
    """A page of the payments of a run whose payees have no email, or of all, in the order of the file."""
    if is_of_all:
        rows = await db.rows(PrintedAdvice, LIST_ALL, plan_manager_id, run_id, after, limit + 1)
    else:
        rows = await db.rows(PrintedAdvice, LIST_WITHOUT_EMAIL, plan_manager_id, run_id, after, limit + 1)
    return cut_page(rows, limit)


class AdviceLetter(Struct):
    """A payment whose remittance advice is to be printed, with the postal address of its payee."""

    id: UUID
    payee_kind: PayeeKind
    payee_id: UUID
    payee_name: str
    address_line_1: str | None
    address_line_2: str | None
    city: str | None
    state: str | None
    postcode: str | None


_ADDRESS: LiteralString = """
    left join lateral (
        select address as address_line_1, null as address_line_2, city, state, postcode
        from providers
        where plan_manager_id = $1 and id = letter.payee_id and letter.payee_kind = 'provider'
        union all
        select address_line_1, address_line_2, city, state, postcode
        from participants
        where plan_manager_id = $1 and id = letter.payee_id and letter.payee_kind = 'participant'
        offset 0
    ) address on true
"""
_LETTER_COLUMNS: LiteralString = """
    letter.id, letter.payee_kind, letter.payee_id, letter.payee_name, address.address_line_1, address.address_line_2,
    address.city, address.state, address.postcode
"""
LIST_LETTERS: LiteralString = f"""
    select {_LETTER_COLUMNS}
    from (
        select id, payee_kind, payee_id, payee_name {WITHOUT_EMAIL} order by id limit $3 offset $4
    ) letter
    {_ADDRESS}
    order by letter.id
"""
LIST_ALL_LETTERS: LiteralString = f"""
    select {_LETTER_COLUMNS}
    from (
        select id, payee_kind, payee_id, payee_name from payments
        where plan_manager_id = $1 and run_id = $2
        order by id
        limit $3 offset $4
    ) letter
    {_ADDRESS}
    order by letter.id
"""


async def list_letters(
    db: Executor, plan_manager_id: UUID, run_id: UUID, limit: int, offset: int, *, is_of_all: bool
) -> list[AdviceLetter]:
    """The payments of a run whose payees get no remittance advice by mail, or all, in the order of the file."""
    if is_of_all:
        return await db.rows(AdviceLetter, LIST_ALL_LETTERS, plan_manager_id, run_id, limit, offset)
    return await db.rows(AdviceLetter, LIST_LETTERS, plan_manager_id, run_id, limit, offset)


COUNT_WITHOUT_EMAIL: LiteralString = f"select count(*) {WITHOUT_EMAIL}"


async def count_without_email(db: Executor, plan_manager_id: UUID, run_id: UUID) -> int:
    return await db.one(int, COUNT_WITHOUT_EMAIL, plan_manager_id, run_id)


IS_WITHOUT_EMAIL: LiteralString = f"select exists (select {WITHOUT_EMAIL} and id = $3)"


async def is_without_email(db: Executor, plan_manager_id: UUID, run_id: UUID, payment_id: UUID) -> bool:
    return await db.one(bool, IS_WITHOUT_EMAIL, plan_manager_id, run_id, payment_id)


class AdviceText(Struct):
    """The texts of a remittance advice that aren't in ASCII, together."""

    payment_id: UUID
    payee_name: str
    text: str


# Control characters are left out of a PDF, and ASCII letters are in each font.
LIST_TEXTS = r"""
    select id as payment_id, payee_name, text
    from (
        select id, position, payee_name, concat_ws(' ', payee_name, (
            select string_agg(concat_ws(' ', invoice.invoice_number, (
                select concat_ws(' ', person.first_name, person.last_name) from participants person
                where person.plan_manager_id = $1 and person.id = invoice.participant_id
            ), (
                select string_agg(
                    concat_ws(' ', line.description, line.service_item_number, line.rejection_reason), ' ')
                from invoice_lines line
                where line.plan_manager_id = $1 and line.invoice_id = invoice.id and not line.is_deleted
            )), ' ')
            from invoices invoice
            where invoice.plan_manager_id = $1 and invoice.id in (
                select paid.invoice_id from payment_lines paid
                where paid.plan_manager_id = $1 and paid.payment_id = payments.id
            )
        )) as text
        from payments
        where plan_manager_id = $1 and run_id = $2
    ) advice
    where text ~ '[^\x01-\x7f]'
    order by position
"""


async def list_texts(db: Executor, plan_manager_id: UUID, run_id: UUID) -> list[AdviceText]:
    """What the remittance advices of a run say beyond ASCII, in the order of the file."""
    return await db.rows(AdviceText, LIST_TEXTS, plan_manager_id, run_id)
