"""Bank details: propose an account for a payee; list the proposals that wait, approve and reject them."""

from uuid import UUID

from plankeeper.console.bank_details.section import BANK_DETAILS_URL, payee_url
from plankeeper.console.shell.form_reader import FormReader
from plankeeper.console.shell.routing import FormRequest, HtmlPage, PageRequest, Pages, Redirect
from plankeeper.core.context import or_404
from plankeeper.core.errors import DomainError
from plankeeper.core.ids import parse_uuid
from plankeeper.resources.bank_details import service, store
from plankeeper.resources.bank_details.accounts import Payee
from plankeeper.resources.bank_details.bank_text import MAX_ACCOUNT_NAME
from plankeeper.resources.bank_details.parsing import parse_account
from plankeeper.resources.bank_details.schemas import MAX_TEXT
from plankeeper.resources.bank_details.waiting import PAGE_SIZE, WaitingProposal, get_waiting, list_waiting

pages = Pages()

_NIL = UUID(int=0)


@pages.get("/bank-details", role="manager")
async def list_(request: PageRequest) -> HtmlPage:
    """The proposals that wait for approval, those that have waited longest first."""
    after = parse_uuid(request.query.text("after")) or _NIL
    found = await list_waiting(request.db, request.settings, request.plan_manager_id, after, PAGE_SIZE + 1)
    waiting = found[:PAGE_SIZE]
    _record_access(request, waiting)
    next_url = f"{BANK_DETAILS_URL}?after={waiting[-1].row.proposal_id}" if len(found) > PAGE_SIZE else None
    context = {"waiting": [(each, payee_url(each.row.payee)) for each in waiting], "next": next_url}
    return HtmlPage("bank_details/waiting.html", context)


def _record_access(request: PageRequest, waiting: list[WaitingProposal]) -> None:
    ids = [each.row.payee_id for each in waiting if each.row.payee_kind == "participant" and not each.is_deleted]
    request.record_list("participant", ids, {})


@pages.get("/bank-details/{proposal_id}", role="manager")
async def get(request: PageRequest, proposal_id: UUID) -> HtmlPage:
    place = (request.executor, request.settings, request.plan_manager_id)
    waiting = await get_waiting(*place, proposal_id)
    if waiting is None:
        or_404(await store.was_proposed(request.executor, request.plan_manager_id, proposal_id) or None)
        raise DomainError("invalid_transition", service.NOT_WAITING)
    _record_access(request, [waiting])
    context = {
        "waiting": waiting,
        "payee_url": payee_url(waiting.row.payee),
        "is_own": waiting.row.proposed_by_account == request.account.account_id,
        "form": request.form,
        "max_length": MAX_TEXT,
        "needs_owner": waiting.row.proposed_estate_payee is not None and not request.has_role("owner"),
    }
    return HtmlPage("bank_details/proposal.html", context)


@pages.post("/bank-details/{proposal_id}/approve", role="manager", permission="approve_bank_details", on_error=get)
async def approve(request: FormRequest, proposal_id: UUID) -> Redirect:
    text = _require_text(request, "called_back")
    waiting = await get_waiting(request.tx, request.settings, request.plan_manager_id, proposal_id)
    after = await service.approve(request.write_context, proposal_id, text)
    name = waiting.name if waiting else "the payee"
    return Redirect(BANK_DETAILS_URL, f"Approved: {name} is paid to the account ending in {after.current_ending}.")


@pages.post("/bank-details/{proposal_id}/reject", role="manager", permission="approve_bank_details", on_error=get)
async def reject(request: FormRequest, proposal_id: UUID) -> Redirect:
    await service.reject(request.write_context, proposal_id, _require_text(request, "reject_reason"))
    return Redirect(BANK_DETAILS_URL, "Rejected. The bank details stay as they were.")


def _require_text(request: FormRequest, name: str) -> str:
    with FormReader(request.form) as fields:
        return fields.read_required_text(name, MAX_TEXT)


async def _new(request: PageRequest, payee: Payee) -> HtmlPage:
    contacts = await store.list_contacts(request.executor, request.plan_manager_id, [payee])
    contact = or_404(contacts.get(payee))
    context = {
        "payee": payee,
        "name": contact.name or "No name",
        "payee_url": payee_url(payee),
        "form": request.form,
        "max_name": MAX_ACCOUNT_NAME,
        "is_deceased": contact.is_deceased,
    }
    return HtmlPage("bank_details/new.html", context)


async def _propose(request: FormRequest, payee: Payee) -> Redirect:
    typed = request.form.text("account_name")
    account = parse_account(request.form.text("bsb"), request.form.text("account_number"), typed)
    before = await store.get(request.tx, request.plan_manager_id, payee)
    await service.propose(request.write_context, payee, account, request.form.text("estate_payee") or None)
    after = await store.get(request.tx, request.plan_manager_id, payee)
    if before and after and before.proposal_id == after.proposal_id:
        return Redirect(payee_url(payee), "Nothing was changed: this account is known already.")
    name = f" Bank files have its name as “{account.name}”." if account.name != " ".join(typed.split()) else ""
    return Redirect(payee_url(payee), f"Proposed. The account takes effect when another person approves it.{name}")


@pages.get("/providers/{provider_id}/bank-details/new", role="manager", permission="make_payments")
async def new_of_provider(request: PageRequest, provider_id: UUID) -> HtmlPage:
    return await _new(request, Payee("provider", provider_id))


@pages.post(
    "/providers/{provider_id}/bank-details", role="manager", permission="make_payments", on_error=new_of_provider
)
async def propose_of_provider(request: FormRequest, provider_id: UUID) -> Redirect:
    return await _propose(request, Payee("provider", provider_id))


@pages.get(
    "/participants/{participant_id}/bank-details/new",
    role="manager",
    permission="make_payments",
    access_log="participant",
)
async def new_of_participant(request: PageRequest, participant_id: UUID) -> HtmlPage:
    return await _new(request, Payee("participant", participant_id))


@pages.post(
    "/participants/{participant_id}/bank-details",
    role="manager",
    permission="make_payments",
    on_error=new_of_participant,
)
async def propose_of_participant(request: FormRequest, participant_id: UUID) -> Redirect:
    return await _propose(request, Payee("participant", participant_id))
