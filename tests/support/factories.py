"""Plan managers with one of everything: with what the API shows, and with all that the console shows besides."""

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, get_args, get_type_hints
from uuid import UUID

from starlette.responses import JSONResponse, Response
from uuid_utils.compat import uuid7

from plankeeper.access.accounts import invitations, link_store, sessions
from plankeeper.access.accounts.credentials import LoginError
from plankeeper.access.api_keys import service
from plankeeper.access.plan_managers import store as plan_managers
from plankeeper.access.saved_views import store as saved_views
from plankeeper.access.saved_views.store import SavedView
from plankeeper.access.tokens import hash_token, new_token
from plankeeper.console.application import page_routes
from plankeeper.console.shell.routing import HtmlPage, PageRoute
from plankeeper.core.context import SYSTEM, WriteContext
from plankeeper.core.encryption.bank_accounts import BankAccount
from plankeeper.core.files import Download
from plankeeper.core.json import to_json
from plankeeper.imports import file_store as import_files
from plankeeper.imports.schemas import ImportFile
from plankeeper.resources.bank_details import service as bank_details
from plankeeper.resources.bank_details import store as bank_details_store
from plankeeper.resources.bank_details.accounts import Payee
from plankeeper.resources.claims import service as claims
from plankeeper.resources.claims.schemas import NewClaimBatch
from plankeeper.resources.invoices import approval_store
from plankeeper.resources.invoices import store as invoice_store
from plankeeper.resources.invoices.approval import join_token
from plankeeper.resources.invoices.approval_requests import content_hash
from plankeeper.resources.invoices.approval_schemas import NewLink
from plankeeper.resources.trash import service as trash_service
from support.claimed_records import import_claimed, make_claim_batches, make_paid_run, make_payment_runs
from support.claims import NDIS_NUMBER
from support.client import ALL_SCOPES, PREFIX, Client
from support.console import Account, Browser, create_account
from support.fees import make_fees, take_fee
from support.importing import import_records
from support.imports import confirm, import_path, upload
from support.results import results_csv
from support.server import RunningServer, wait_until
from support.statement_runs import make_statement_runs
from support.supplier_statements import record_statement

PROVIDER_EMAIL = "billing@example.com"
INVOICE_NUMBER = "invoice.invoice_number"  # where no other text is asked for
MEMBER_EMAIL = "member@example.com"
INVOICE_LINE = {"service_item_number": "01_011_0107_1_1", "quantity": 2, "unit_price": 617.25, "total_price": 1234.5}

TextFactory = Callable[[str], str]  # what stands in the field of a name


def is_download(entry: PageRoute) -> bool:
    """Whether a path is a file: a download, or the image of a page of a document."""
    return get_type_hints(entry.handler)["return"] in (Download, Response)


def returns_json(entry: PageRoute) -> bool:
    """Whether a path is for scripts of pages."""
    return get_type_hints(entry.handler)["return"] is JSONResponse


def is_redirect(entry: PageRoute) -> bool:
    """Whether a path only leads elsewhere, and has no page of its own."""
    returned = get_type_hints(entry.handler)["return"]
    return not {returned, *get_args(returned)} & {HtmlPage, Download}


PAGES = [each for each in page_routes() if each.method == "GET"]
DOWNLOADS = [each for each in PAGES if is_download(each)]
FORMS = [each for each in page_routes() if each.method == "POST"]


_note_type_ids = count(1_000_001)  # beyond those that the database gives
# The provider and the type of the note that each plan manager has: all have the same, so that a fixed body names them.
NOTED_PROVIDER_ID, NOTED_TYPE_ID = "01900000-0000-7000-8000-0000000000aa", 900_001
ADJUSTED_LINE_ID = "01900000-0000-7000-8000-0000000000ac"  # one that the agency has paid, of each plan manager
EXPECTED_REQUESTS = 4  # that _asked_for makes


def route_name(entry: PageRoute) -> str:
    return f"{entry.method} {entry.path}"


@dataclass(frozen=True)
class Tenant:
    """A plan manager with its client. `ids` has one id for each id that a path can hold, and some more."""

    server: RunningServer
    client: Client
    ids: dict[str, str]

    @property
    def plan_manager_id(self) -> UUID:
        return UUID(self.client.plan_manager_id)


async def create_client(server: RunningServer) -> Client:
    """A client with a key that may do everything for a plan manager that has nothing yet, where a fixture for one test
    will not do.
    """
    async with server.db.transaction() as tx:
        plan_manager = await plan_managers.insert(tx, uuid7(), "Test plan manager")
        assert plan_manager is not None
    # Citus checks references as the owner, and lets only one role see what a transaction changed on every node.
    async with server.db.transaction() as tx:
        ctx = WriteContext(tx, plan_manager.id, server.settings, SYSTEM)
        key = await service.create(ctx, "test", [plan_manager.id], ALL_SCOPES, None)
    return Client(server.url, key, plan_manager.id)


def webhooks(client: Client) -> dict[str, str]:
    """An endpoint with a delivery. It wants what never happens: else events would become deliveries while a test looks
    at what there is.
    """
    wanted = {"url": "https://example.com/hooks", "event_types": ["api_key.plan_manager_removed"]}
    endpoint = client.create("/webhook-endpoints", wanted)["id"]
    client.post(f"/webhook-endpoints/{endpoint}/test").raise_for_status()
    [delivery] = client.get(f"/webhook-endpoints/{endpoint}/deliveries").json()["data"]
    return {
        "webhook_endpoint_id": endpoint, "webhook_delivery_id": delivery["id"], "event_id": delivery["event_id"]
    }  # fmt: skip


def absent_ids(world: Tenant) -> dict[str, str]:
    """Ids that nobody has."""
    return {name: "987654321" if name == "note_type_id" else str(uuid7()) for name in world.ids}


def import_invoice(server: RunningServer, client: Client, record_ids: dict[str, str], **values: Any) -> str:
    """Import an invoice without warnings, except for what `values` cause: its id.

    `record_ids` has the ids of its participant and its provider.
    """
    row = {
        "id": str(uuid7()), "invoice_number": "INV-1", "invoice_date": "2026-01-15", "total": 1234.5, "tax": 0,
        "subtotal": 1234.5, "participant_id": record_ids["participant"], "pm_provider_id": record_ids["provider"],
        "line_items": [INVOICE_LINE],
    } | values  # fmt: skip
    report = server.run(import_records(server, UUID(client.plan_manager_id), "invoices", [row]))
    assert not report.errors, report.errors
    return row["id"]


@dataclass(frozen=True)
class SeededPlanManager:
    """`ids` has the value of each parameter of a page's path, `texts` every stored text by its location."""

    server: RunningServer
    plan_manager_id: UUID
    client: Client
    owner: Account
    ids: dict[str, str]
    texts: dict[str, str]
    preview: str = ""  # the page that tells what an import would do

    def path(self, entry: PageRoute) -> str:
        return entry.path.format(**self.ids)

    def browser(self) -> Browser:
        signed_in = Browser(self.server.url)
        signed_in.start_session(self.server, self.owner)
        return signed_in

    def event_ids(self) -> list[UUID]:
        statement = "select id from events where plan_manager_id = $1"
        return self.server.run(self.server.db.rows(UUID, statement, self.plan_manager_id))

    def event_count(self) -> int:
        """How much was written: every write makes an event."""
        statement = "select count(*) from events where plan_manager_id = $1 and resource_kind <> 'account'"
        return self.server.run(self.server.db.one(int, statement, self.plan_manager_id))


class _TextRecorder:
    def __init__(self, text: TextFactory) -> None:
        self.text, self.recorded = text, dict[str, str]()

    def fields(self, kind: str, *names: str) -> dict[str, str]:
        values = {name: self.text(f"{kind}.{name}") for name in names}
        self.recorded |= {f"{kind}.{name}": value for name, value in values.items()}
        return values


def filled(server: RunningServer, client: Client) -> Tenant:
    """Give a plan manager one of everything that the API shows."""
    plan_manager_id = UUID(client.plan_manager_id)
    records = _import_rows(server, plan_manager_id, _TextRecorder(lambda name: name))
    category, subcategory = records.pop("category"), str(uuid7())
    reason = {"id": subcategory, "name": "Far", "parent_id": category}
    report = server.run(import_records(server, plan_manager_id, "exit-reasons", [reason]))
    assert not report.errors, report.errors
    ids = records | webhooks(client) | {
        "exit_reason_category_id": category, "exit_reason_subcategory_id": subcategory, "exit_reason_id": subcategory,
    }  # fmt: skip
    upload_document(client, ids["invoice_id"])
    ids |= _import_action_invoices(server, plan_manager_id)
    ids |= make_claim_batches(server, client)
    ids |= make_payment_runs(server, client)
    ids["statement_id"] = _make_statement(client, ids)
    ids |= make_fees(server, client)
    ids |= make_statement_runs(server, client)
    return Tenant(server, client, ids)


# An invoice for each action, in a state that allows it. Actions on a line are on its only one.
ACTION_INVOICES: dict[str, dict[str, Any]] = {
    "hold": {},
    "release": {"claim_status": "on_hold"},
    "cancel": {},
    "reopen": {"claim_status": "cancelled"},
    "wont_claim": {},
    "request_approval": {},
    "approve": {"approval_status": "pending"},
    "reject": {"approval_status": "pending"},
    "ignore_warning": {},
    "restore_warning": {"state_management": {"ignored_errors": ["check_dates"]}},
    "cancel_line": {},
    "reopen_line": {"claim_status": "cancelled"},
    "retry_line": {"claim_status": "rejected"},
    "split_line": {},
    "claimed_elsewhere": {},
    "claim_result_line": {"claim_status": "pending"},
    "claim_rest_line": {"claim_status": "partially_paid"},
    "adjustments": {"claim_status": "payment_ready"},
}


def _import_action_invoices(server: RunningServer, plan_manager_id: UUID) -> dict[str, str]:
    """The ids of the invoices and of their lines, as `hold_invoice_id` and `hold_line_id`."""
    ids = {f"{action}_{kind}_id": str(uuid7()) for action in ACTION_INVOICES for kind in ("invoice", "line")}
    ids["adjustments_line_id"] = ADJUSTED_LINE_ID
    rows: list[dict[str, Any]] = []
    for action, values in ACTION_INVOICES.items():
        status = values.get("claim_status", "new")
        line = {
            "id": ids[f"{action}_line_id"], "service_date_from": "2026-01-01", "service_date_to": "2026-01-31",
            "quantity": 3, "total_price": 30, "claim_status": "new" if status == "on_hold" else status,
            "paid_amount": {"partially_paid": 10, "payment_ready": 30}.get(status),
        }  # fmt: skip
        rows.append({"id": ids[f"{action}_invoice_id"], "line_items": [line]} | values)
    report = server.run(import_records(server, plan_manager_id, "invoices", rows))
    assert not report.errors, report.errors
    return ids


def _make_statement(client: Client, ids: dict[str, str]) -> str:
    return client.create(f"/participants/{ids['participant_id']}/statements", {"month": "2026-01"})["id"]


def upload_document(client: Client, invoice_id: str, content: bytes = b"%PDF-1.7 a sample") -> dict[str, Any]:
    """Store the document of an invoice."""
    url = f"{PREFIX}/invoices/{invoice_id}/document"
    response = client.http.put(url, content=content, headers=client.headers())
    assert response.status_code == 200, response.text
    return response.json()


def unique_text(name: str) -> str:
    """A text that occurs nowhere else, and says where it stands."""
    return f"{name} {uuid7().hex[-8:]}"


def seed_plan_manager(server: RunningServer, text: TextFactory = lambda name: name) -> SeededPlanManager:
    """Fill a new plan manager; `text` returns the text of each field that takes any text."""
    texts = _TextRecorder(text)
    plan_manager_id, key_id, key, owner = server.run(_create_plan_manager(server, texts))
    client = Client(server.url, key, plan_manager_id)
    ids = _import_rows(server, plan_manager_id, texts) | _create_over_api(client, texts)
    ids |= server.run(_create_accounts(server, plan_manager_id, owner, texts))
    ids |= {
        "plan_manager_id": str(plan_manager_id),
        "key_id": str(key_id),
        "name": "participants.csv",
        "code": "check_dates",
        "number": "1",
    }
    seeded = SeededPlanManager(server, plan_manager_id, client, owner, ids, texts.recorded)
    wait_until(lambda: server.run(_is_log_complete(server, plan_manager_id)))
    latest = (
        "select id || '.' || count - 1 from api_request_batches where plan_manager_id = $1 order by id desc limit 1"
    )
    ids["logged_request_id"] = server.run(server.db.one(str, latest, plan_manager_id))
    upload_document(client, ids["invoice_id"])
    ids["statement_id"] = _make_statement(client, ids)
    ids["approval_token"] = _create_approval_link(seeded)
    change = {"id": ids["participant_id"], "postcode": "7000", "postal_statement": True}
    assert not server.run(import_records(server, plan_manager_id, "participants", [change])).errors
    event = "select id from events where plan_manager_id = $1 and type = 'participant.updated' and resource_id = $2"
    event += " order by id desc limit 1"
    ids["event_id"] = str(server.run(server.db.one(UUID, event, plan_manager_id, ids["participant_id"])))
    ids["entry_id"] = str(server.run(_delete_to_trash(server, plan_manager_id, texts)))
    ids |= _make_money(server, client, owner, ids, texts)
    ids["view_id"] = str(server.run(_save_view(server, plan_manager_id, owner, texts)))
    ids["import_id"] = _import_file(seeded, texts)
    preview = _upload_file(seeded, texts)
    ids["file_id"] = re.findall(r"/console/imports/([0-9a-f-]{36})/columns", preview)[0]
    return replace(seeded, preview=preview)


def seed_records(server: RunningServer, text: TextFactory) -> SeededPlanManager:
    """Fill a new plan manager with the imported records alone, in a fraction of the time of `seed_plan_manager`."""
    texts = _TextRecorder(text)
    plan_manager_id, _, key, owner = server.run(_create_plan_manager(server, texts))
    ids = _import_rows(server, plan_manager_id, texts)
    client = Client(server.url, key, plan_manager_id)
    return SeededPlanManager(server, plan_manager_id, client, owner, ids, texts.recorded)


def _make_money(
    server: RunningServer, client: Client, owner: Account, ids: dict[str, str], texts: _TextRecorder
) -> dict[str, str]:
    """The ids of what has to do with bank details, claims, payments, fees and statements."""
    plan_manager_id = UUID(client.plan_manager_id)
    made = {"proposal_id": str(server.run(_propose_bank_details(server, plan_manager_id)))}
    file_name = texts.fields("statement", "file_name")["file_name"]
    server.run(record_statement(server, plan_manager_id, UUID(ids["provider_id"]), file_name))
    claimed = import_claimed(server, client)
    made |= server.run(_submit_claim_batch(server, plan_manager_id, claimed, owner, texts))
    made |= make_paid_run(server, client)
    made["fee_taking_id"] = take_fee(server, client)
    made |= make_statement_runs(server, client)
    return made


def _create_approval_link(seeded: SeededPlanManager) -> str:
    """The token of a link to approve the invoice, as a mail has it."""
    place, invoice_id = seeded.plan_manager_id, UUID(seeded.ids["invoice_id"])
    seeded.client.post(f"/invoices/{invoice_id}/request-approval").raise_for_status()

    async def create() -> str:
        secret, link_id, now = new_token(), uuid7(), datetime.now(UTC)
        async with seeded.server.db.transaction() as tx:
            invoice = await invoice_store.get(tx, place, invoice_id)
            assert invoice
            participant_id = UUID(seeded.ids["participant_id"])
            link = NewLink(invoice_id, link_id, participant_id, None, content_hash(invoice), False, now)
            await approval_store.insert_links(tx, place, [link])
            expires_at = now + timedelta(hours=72)
            assert await approval_store.send_link(tx, place, invoice_id, link_id, hash_token(secret), now, expires_at)
        return join_token(place, secret)

    return seeded.server.run(create())


async def _submit_claim_batch(
    server: RunningServer, plan_manager_id: UUID, invoice_id: str, owner: Account, texts: _TextRecorder
) -> dict[str, str]:
    """The ids of a submitted batch, and of the file of its results that the owner has uploaded."""
    async with server.db.transaction() as tx:
        ctx = WriteContext(tx, plan_manager_id, server.settings, SYSTEM)
        batch = await claims.create(ctx, NewClaimBatch(invoice_ids=[invoice_id]))
        assert batch.id
        await claims.submit(ctx, batch.id)
        reason = texts.fields("claim", "message")["message"]
        row = {"NDISNumber": NDIS_NUMBER, "Payment Request Status": "ERROR", "Error Message": reason}
        content = results_csv([row | {"ClaimReference": each} for each in ("CLAIMED", reason)])
        file = ImportFile(uuid7(), "claim-results", reason, content, owner.account_id, datetime.now(UTC))
        await import_files.insert(tx, plan_manager_id, file)
    return {"claim_batch_id": str(batch.id), "results_file_id": str(file.id)}


async def _propose_bank_details(server: RunningServer, plan_manager_id: UUID) -> UUID:
    """The id of a proposal of the operator, on a provider that stays."""
    payee, account = Payee("provider", UUID(NOTED_PROVIDER_ID)), BankAccount("062000", "12345678", "Noted Provider")
    async with server.db.transaction() as tx:
        await bank_details.propose(WriteContext(tx, plan_manager_id, server.settings, SYSTEM), payee, account)
        row = await bank_details_store.get(tx, plan_manager_id, payee)
    assert row
    assert row.proposal_id
    return row.proposal_id


async def _create_plan_manager(server: RunningServer, texts: _TextRecorder) -> tuple[UUID, UUID, str, Account]:
    names = texts.fields("plan_manager", "name") | texts.fields("api_key", "key_name")
    async with server.db.transaction() as tx:
        plan_manager = await plan_managers.insert(tx, uuid7(), names["name"])
        assert plan_manager is not None
    async with server.db.transaction() as tx:  # another one, as in create_client
        key = await service.create(
            WriteContext(tx, plan_manager.id, server.settings, SYSTEM),
            names["key_name"],
            [plan_manager.id],
            ["read", "write"],
            None,
        )
        key_id = await tx.one(
            UUID, "select api_key_id from api_key_plan_managers where plan_manager_id = $1", plan_manager.id
        )
    owner = await create_account(server, plan_manager.id, "owner", texts.fields("account", "owner_name")["owner_name"])
    return plan_manager.id, key_id, key, owner


def _import_rows(server: RunningServer, plan_manager_id: UUID, texts: _TextRecorder) -> dict[str, str]:
    """The imported rows; the invoice has an error for each kind of warning."""
    ids = {
        name: str(uuid7()) for name in ("category", "account_manager_id", "provider_id", "participant_id", "plan_id")
    }
    ids |= {name: str(uuid7()) for name in ("invoice_id", "line_id", "session_id", "team_member_id")}
    ids["note_type_id"] = str(next(_note_type_ids))  # each plan manager has one of its own
    rows = _contact_rows(ids, texts) | _work_rows(ids, texts)
    for resource, row in [*rows.items(), *_note_rows(ids, texts).items()]:
        report = server.run(import_records(server, plan_manager_id, resource, [row]))
        assert not report.errors, (resource, report.errors)
    return ids


def _contact_rows(ids: dict[str, str], texts: _TextRecorder) -> dict[str, dict[str, Any]]:
    return {
        "exit-reasons": {"id": ids["category"], **texts.fields("exit_reason", "name")},
        "account-managers": {
            "id": ids["account_manager_id"], "email": "manager@example.com",
            **texts.fields("account_manager", "first_name", "last_name"),
        },
        "participants": {
            "id": ids["participant_id"], "account_manager_id": ids["account_manager_id"], "email": "p@example.com",
            "exit_reason_category_id": ids["category"],
            **texts.fields(
                "participant", "first_name", "middle_name", "last_name", "preferred_name", "participant_number",
                "gender", "pronouns", "address_line_1", "address_line_2", "city", "reason_for_leaving",
            ),
        },
        "plans": {
            "id": ids["plan_id"], "participant_id": ids["participant_id"], "start_date": "2026-01-01",
            "end_date": "2029-12-31", "components": [
                {
                    "kind": "flexible", "categories": [1], "amount": 500, **texts.fields("component", "name"),
                    "spent_elsewhere": {"amount": 5, "as_of": "2026-02-01", **texts.fields("elsewhere", "source")},
                }
            ],
        },
        "team-members": {
            "id": ids["team_member_id"], "participant_id": ids["participant_id"], "email": MEMBER_EMAIL,
            "permissions": ["view_budget", "view_invoices"], "contact_priority": 1,
            **texts.fields("member", "first_name", "last_name", "role", "note", "address_line_1", "city"),
        },
    }  # fmt: skip


def _work_rows(ids: dict[str, str], texts: _TextRecorder) -> dict[str, dict[str, Any]]:
    line = texts.fields("line", "description", "service_item_number", "claim_batch_ref", "claim_number", "payment_ref")
    return {
        "providers": {
            "id": ids["provider_id"], "email": PROVIDER_EMAIL,
            **texts.fields("provider", "entity_name", "abn", "address", "city", "ndis_provider_number"),
        },
        "note-types": {
            "id": int(ids["note_type_id"]),
            **texts.fields("note_type", "note_type", "badge_color", "highlight_color"),
        },
        "invoices": {
            "id": ids["invoice_id"], "participant_id": ids["participant_id"], "pm_provider_id": ids["provider_id"],
            "invoice_date": "2099-01-01", "total": "1234.5",
            "line_items": [{"id": ids["line_id"], **line, "quantity": "3", "total_price": "1234.5"}],
            **texts.fields("invoice", "invoice_number", "s3_key", "email_message_id"),
        },
        "invoice-view-sessions": {
            "id": ids["session_id"], "invoice_id": ids["invoice_id"], "session_started": "2026-01-02T03:04:05Z",
            **texts.fields("viewer", "user_id", "user_name"),
        },
    }  # fmt: skip


def _note_rows(ids: dict[str, str], texts: _TextRecorder) -> dict[str, dict[str, Any]]:
    """A note with a type and a record of its own, so that others can be deleted."""
    ids["note_id"] = str(uuid7())
    return {
        "note-types": {"id": NOTED_TYPE_ID, **texts.fields("noted_type", "note_type")},
        "providers": {"id": NOTED_PROVIDER_ID, **texts.fields("noted_provider", "entity_name")},
        "notes": {
            "id": ids["note_id"], "resource_kind": "provider", "resource_id": NOTED_PROVIDER_ID,
            "note_type_id": NOTED_TYPE_ID, "pinned": True, **texts.fields("note", "text", "author_name"),
        },
    }  # fmt: skip


def _create_over_api(client: Client, texts: _TextRecorder) -> dict[str, str]:
    """Requests to the API, with texts in headers and paths too."""
    endpoint = {"url": "https://example.com/hooks", **texts.fields("webhook_endpoint", "description")}
    created = client.create("/webhook-endpoints", endpoint)
    client.post(f"/webhook-endpoints/{created['id']}/test", None)
    deliveries = client.get(f"/webhook-endpoints/{created['id']}/deliveries", after="0").json()["data"]
    # An id of a request has no spaces.
    request_id = texts.text("request.request_id").replace(" ", "")
    texts.recorded["request.request_id"] = request_id
    user_agent = texts.fields("request", "user_agent")["user_agent"]
    client.request("GET", "/participants", headers={"X-Request-Id": request_id, "User-Agent": user_agent})
    return {"endpoint_id": created["id"], "delivery_id": deliveries[0]["id"]}


async def _is_log_complete(server: RunningServer, plan_manager_id: UUID) -> bool:
    """Whether the request log has all requests that were sent."""
    statement = "select coalesce(sum(count), 0) from api_request_batches where plan_manager_id = $1"
    return await server.db.one(int, statement, plan_manager_id) == EXPECTED_REQUESTS


def _upload_file(seeded: SeededPlanManager, texts: _TextRecorder) -> str:
    """A file is sent for import, and waits: the page with its check."""
    browser = seeded.browser()
    names = texts.fields("file", "first_name")
    content = to_json({"id": seeded.ids["participant_id"], **names}) + "\n"
    response = upload(browser, content.encode(), "participants", texts.text("file.name"))
    browser.http.close()
    return response.text


def _import_file(seeded: SeededPlanManager, texts: _TextRecorder) -> str:
    """The id of an import that changed nothing, and rejected a row."""
    browser = seeded.browser()
    names = texts.fields("imported", "rejected")
    rows = [{"id": seeded.ids["participant_id"]}, {"first_name": names["rejected"], "state": "nowhere"}]
    content = "id,first_name,state\n" + "".join(
        f'{row.get("id", "")},"{row.get("first_name", "").replace(chr(34), chr(34) * 2)}",{row.get("state", "")}\n'
        for row in rows
    )
    path = import_path(upload(browser, content.encode(), "participants", texts.text("imported.file_name")))
    assert confirm(browser, path).status_code == 200
    browser.http.close()
    return path.rpartition("/")[2]


async def _create_accounts(
    server: RunningServer, plan_manager_id: UUID, owner: Account, texts: _TextRecorder
) -> dict[str, str]:
    """Another person, an invitation, and a sign-in."""
    names = texts.fields("account", "person_name", "invited_name", "user_agent")
    other = await create_account(server, plan_manager_id, "viewer", names["person_name"])
    async with server.db.transaction() as tx:
        ctx = WriteContext(tx, plan_manager_id, server.settings, SYSTEM)
        token = await invitations.invite(ctx, f"{uuid7()}@example.com", "manager", names["invited_name"])
    assert token
    invited = await invitations.get_open(server.db, token)
    assert invited is not None
    with suppress(LoginError):
        await sessions.sign_in(server.db, server.settings, owner.email, "wrong", "192.0.2.1", names["user_agent"])
    reset_token = new_token()
    expires_at = datetime.now(UTC) + timedelta(minutes=30)
    await link_store.upsert_reset_link(server.db, other.email, hash_token(reset_token), expires_at)
    return {
        "account_id": str(other.account_id),
        "token": token,
        "reset_token": reset_token,
        "invitation_id": str(invited.invitation.id),
    }


async def _delete_to_trash(server: RunningServer, plan_manager_id: UUID, texts: _TextRecorder) -> UUID:
    """Another participant with a team member, in the trash."""
    participant_id = str(uuid7())
    rows = {
        "participants": {"id": participant_id, **texts.fields("binned", "first_name", "last_name", "city")},
        "team-members": {"participant_id": participant_id, **texts.fields("binned_member", "first_name", "note")},
    }
    for resource, row in rows.items():
        report = await import_records(server, plan_manager_id, resource, [row])
        assert not report.errors, (resource, report.errors)
    async with server.db.transaction() as tx:
        ctx = WriteContext(tx, plan_manager_id, server.settings, SYSTEM)
        return (await trash_service.delete(ctx, "participant", UUID(participant_id))).id


async def _save_view(server: RunningServer, plan_manager_id: UUID, owner: Account, texts: _TextRecorder) -> UUID:
    name = texts.fields("saved_view", "name")["name"]
    view = SavedView(uuid7(), owner.account_id, "participants", name, "status=Active", True, datetime.now(UTC))
    async with server.db.transaction() as tx:
        await saved_views.insert(tx, plan_manager_id, view)
    return view.id


def missing_ids(seeded: SeededPlanManager) -> Iterator[str]:
    """The parameters of paths without a value."""
    for entry in page_routes():
        for name in entry.path_params:
            if name not in seeded.ids:
                yield f"{route_name(entry)}: {name}"
