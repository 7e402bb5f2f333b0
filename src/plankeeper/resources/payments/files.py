"""The file of a payment run: what is frozen for it, its check before the first download, and its bytes."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Literal, NamedTuple
from uuid import UUID

from plankeeper.access.api_keys.service import responsible_account
from plankeeper.core.context import Disclosure, WriteContext, or_404
from plankeeper.core.errors import DomainError, ErrorResource, FieldError, ValidationError
from plankeeper.core.files import Download
from plankeeper.core.settings import Settings
from plankeeper.events.recorder import record_event
from plankeeper.resources.bank_details.accounts import Payee, PayeeKind, decrypt_account
from plankeeper.resources.bank_details.bank_text import (
    MAX_ACCOUNT_NAME,
    MAX_DESCRIPTION,
    MAX_REMITTER,
    MAX_USER_NAME,
    to_bank_text,
)
from plankeeper.resources.bank_details.payable import PayeeAccount, find_payable
from plankeeper.resources.invoices.line_moves import lock
from plankeeper.resources.office_settings.own_account import decrypt_number
from plankeeper.resources.office_settings.restores import require_confirmed
from plankeeper.resources.office_settings.schemas import OfficeSettings
from plankeeper.resources.office_settings.store import get_account
from plankeeper.resources.payments import store
from plankeeper.resources.payments.aba_file import NO_USER_ID, AbaCredit, AbaHeader, build_aba_file
from plankeeper.resources.payments.rules import SENTENCES, estate_reason, is_covered, payee_of
from plankeeper.resources.payments.schemas import FileHeader, PayableLine, RunWarning, StoredRun
from plankeeper.resources.payments.store import FilePayment

MEDIA_TYPE = "text/plain; charset=us-ascii"
MAX_NAMED = 20  # invoices and payees in an error
SETTINGS_PAGE = "/console/settings/claims-and-payments"
_MISSING = f"isn't set: an owner can set it in Settings, Claims and payments ({SETTINGS_PAGE})"


class Office(NamedTuple):
    """The office's data as a file has it, its account number, which is encrypted, and what differs in the file."""

    header: FileHeader
    account: str
    warnings: Sequence[RunWarning]


async def get_office(ctx: WriteContext, settings: OfficeSettings) -> Office:
    """Raises ValidationError that names the settings that a file needs, and that are missing."""
    account = await get_account(ctx.tx, ctx.plan_manager_id)
    needed = {
        "bank_letters": settings.bank_letters,
        "bank_bsb": settings.bank_bsb,
        "bank_account": account,
        "bank_account_name": settings.bank_account_name,
        "direct_entry_user_name": settings.direct_entry_user_name,
        "direct_entry_description": settings.direct_entry_description,
        "remitter": settings.remitter,
    }
    missing = [FieldError(name, _MISSING, "required") for name, value in needed.items() if not value]
    if missing:
        raise ValidationError(*missing)
    texts = {name: value or "" for name, value in needed.items()}
    lengths = {
        "bank_account_name": MAX_ACCOUNT_NAME,
        "direct_entry_user_name": MAX_USER_NAME,
        "direct_entry_description": MAX_DESCRIPTION,
        "remitter": MAX_REMITTER,
    }
    changed = {name: to_bank_text(texts[name], length).text for name, length in lengths.items()}
    header = FileHeader(
        bank_letters=texts["bank_letters"],
        bsb=texts["bank_bsb"],
        account_name=changed["bank_account_name"],
        user_id=settings.direct_entry_user_id or NO_USER_ID,
        user_name=changed["direct_entry_user_name"],
        description=changed["direct_entry_description"],
        remitter=changed["remitter"],
        has_balancing_record=settings.has_balancing_record,
    )
    warnings = [text_changed(texts[name], text) for name, text in changed.items() if text != texts[name]]
    return Office(header, texts["bank_account"], warnings)


def text_changed(text: str, shown: str) -> RunWarning:
    return RunWarning(code="text_changed", message=f"“{text}” is “{shown}” in the file.")


async def download(ctx: WriteContext, run_id: UUID) -> Download:
    """The file of a run. The first download is checked and recorded.

    Raises NotFound, and DomainError `run_outdated`, and `invalid_transition` for a cancelled run, and for one that paid
    a person whose data was erased.
    """
    run = or_404(await store.select_for_update(ctx.tx, ctx.plan_manager_id, run_id))
    if run.state == "cancelled":
        detail = "The payment run is cancelled, so its file can't be downloaded."
        raise DomainError("invalid_transition", detail, resource=ErrorResource("payment_run", str(run_id)))
    await require_confirmed(ctx.tx, ctx.plan_manager_id)
    payments = await store.list_of_run(ctx.tx, ctx.plan_manager_id, run_id)
    if not all(each.account for each in payments):
        detail = "The file contained the account of a person whose data was erased, so it can't be made again."
        raise DomainError("invalid_transition", detail, resource=ErrorResource("payment_run", str(run_id)))
    if run.downloaded_at is None:
        if run.state == "draft":
            await require_current(ctx, run, payments)
        await _record_download(ctx, run)
    await _disclose(ctx, run_id, payments)
    content = _build(ctx.settings, ctx.plan_manager_id, run, payments)
    return Download.of_bytes(f"{run.number}.aba", MEDIA_TYPE, content)


def _build(settings: Settings, plan_manager_id: UUID, run: StoredRun, payments: Sequence[FilePayment]) -> bytes:
    header = run.header
    number = decrypt_number(settings, plan_manager_id, run.account)
    own = AbaHeader(
        header.bank_letters,
        header.bsb,
        number,
        header.account_name,
        header.user_id,
        header.user_name,
        header.description,
        header.remitter,
        header.has_balancing_record,
    )
    credits_ = list[AbaCredit]()
    for each in payments:
        account = decrypt_account(settings, plan_manager_id, Payee(each.payee_kind, each.payee_id), each.account)
        target = (account.bsb, account.number, each.account_title)
        credits_.append(AbaCredit(*target, each.reference, each.amount))
    return build_aba_file(own, run.process_date, credits_)


async def _record_download(ctx: WriteContext, run: StoredRun) -> None:
    run_id, now, by = or_404(run.id), datetime.now(UTC), ctx.actor.display_name
    account_id = await responsible_account(ctx)
    before = or_404(await store.get_bare(ctx.tx, ctx.plan_manager_id, run_id))
    await store.set_downloaded(ctx.tx, ctx.plan_manager_id, run_id, now, by, account_id)
    after = await store.get_bare(ctx.tx, ctx.plan_manager_id, run_id)
    await record_event(ctx, "payment_run.downloaded", before, after)


async def _disclose(ctx: WriteContext, run_id: UUID, payments: Iterable[FilePayment]) -> None:
    """Access records of the invoices that a file pays, and of the participants in it."""
    lines = await store.list_line_ids(ctx.tx, ctx.plan_manager_id, run_id)
    invoices = list(dict.fromkeys(each.invoice_id for each in lines))
    participants = list(dict.fromkeys(each.payee_id for each in payments if each.payee_kind == "participant"))
    ctx.disclosed.append(Disclosure("exported", "invoice", None, resource_ids=invoices))
    if participants:
        ctx.disclosed.append(Disclosure("exported", "participant", None, resource_ids=participants))


# The check before the first download


class RunProblem(NamedTuple):
    """Why a run is out of date. `text` follows the name of an invoice or of a payee, which is `subject`."""

    kind: Literal["invoice"] | PayeeKind
    id: UUID
    subject: str
    text: str

    def __str__(self) -> str:
        identity = str(self.id) if self.kind == "invoice" else f"{self.kind} {self.id}"
        return f"{self.subject} ({identity}){self.text}"


async def require_current(ctx: WriteContext, run: StoredRun, payments: Sequence[FilePayment]) -> None:
    """Lock the bank details and the invoices of a run whose row is locked.

    Raises DomainError `run_outdated` if an invoice was held, money was reversed, or bank details have changed since.
    """
    run_id = or_404(run.id)
    problems = await _find_problems(ctx, run_id, payments, locks=True)
    if problems:
        named, rest = problems[:MAX_NAMED], len(problems) - MAX_NAMED
        sentences = " ".join(map(str, named)) + (f" And {rest:,} more." if rest > 0 else "")
        detail = f"{sentences} Cancel the run, and make another one."
        raise DomainError("run_outdated", detail, resource=ErrorResource("payment_run", str(run_id)))


async def find_problems(ctx: WriteContext, run_id: UUID) -> list[RunProblem]:
    """What the check before the first download would find now. Nothing is locked."""
    payments = await store.list_of_run(ctx.tx, ctx.plan_manager_id, run_id)
    return await _find_problems(ctx, run_id, payments, locks=False)


async def _find_problems(
    ctx: WriteContext, run_id: UUID, payments: Sequence[FilePayment], *, locks: bool
) -> list[RunProblem]:
    payees = {Payee(each.payee_kind, each.payee_id) for each in payments}
    accounts = await find_payable(ctx.tx, ctx.plan_manager_id, payees, for_update=locks)
    lines = await store.list_line_ids(ctx.tx, ctx.plan_manager_id, run_id)
    if locks:
        await lock(ctx, {each.invoice_id for each in lines})
    problems = await _find_line_problems(ctx, {(each.invoice_id, each.line_id) for each in lines}, accounts)
    return list(dict.fromkeys([*problems, *_find_payee_problems(ctx, payments, accounts)]))


async def _find_line_problems(
    ctx: WriteContext, paid: Collection[tuple[UUID, UUID]], accounts: Mapping[Payee, PayeeAccount]
) -> list[RunProblem]:
    """`paid` are the lines of the run, with the ids of their invoices first."""
    found, ids = list[RunProblem](), sorted({invoice_id for invoice_id, _ in paid})
    for line in await store.list_of_invoices(ctx.tx, ctx.plan_manager_id, ids):
        text = _describe_line_problem(line, accounts) if (line.invoice_id, line.line_id) in paid else None
        if text:
            name = f"Invoice {line.invoice_number or 'without a number'}"
            found.append(RunProblem("invoice", line.invoice_id, name, text))
    return found


def _describe_line_problem(line: PayableLine, accounts: Mapping[Payee, PayeeAccount]) -> str | None:
    if line.is_held:
        return " is on hold."
    if not is_covered(line):
        return ": the agency has reversed a part of it."
    key = payee_of(line)
    account = accounts.get(Payee(*key)) if key else None
    reason = estate_reason(line, has_estate_payee=bool(account and account.estate_payee))
    return f": {SENTENCES[reason]}" if reason else None


def _find_payee_problems(
    ctx: WriteContext, payments: Iterable[FilePayment], accounts: Mapping[Payee, PayeeAccount]
) -> list[RunProblem]:
    found = list[RunProblem]()
    for each in payments:
        payee = Payee(each.payee_kind, each.payee_id)
        current, text = accounts[payee], None
        if current.reason:
            text = f": {SENTENCES[current.reason]}"
        elif current.account != each.account and _differ(ctx, payee, str(current.account), each.account):
            text = ": the bank details have changed."
        if text:
            found.append(RunProblem(payee.kind, payee.id, each.payee_name, text))
    return found


def _differ(ctx: WriteContext, payee: Payee, first: str, second: str) -> bool:
    """Whether two encrypted accounts differ. Those of one account do after a rotation of keys."""
    one, other = (decrypt_account(ctx.settings, ctx.plan_manager_id, payee, each) for each in (first, second))
    return one != other
