"""The table of pages: their required roles, and the arguments and results of their handlers."""

import inspect
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field, fields
from datetime import date
from typing import Any, Literal, TypeVar, get_type_hints
from urllib.parse import urlencode
from uuid import UUID

from starlette.responses import Response

from plankeeper.access import policy
from plankeeper.access.accounts.schemas import NO_DETAILS, RoleDetails, Session
from plankeeper.access.policy import Permission
from plankeeper.access.single_sign_on.service import SingleSignOn
from plankeeper.console.shell.concurrency import SharedLimit
from plankeeper.console.shell.cookies import FlashLink
from plankeeper.console.shell.forms import FieldWarning, Form, UploadLimits
from plankeeper.core.context import (
    Access,
    AccessAction,
    AccessedKind,
    Actor,
    ConstraintErrorHandler,
    Disclosure,
    OnAccess,
    ReadContext,
    WriteContext,
)
from plankeeper.core.files import Download
from plankeeper.core.settings import Settings
from plankeeper.database.client import Database, Executor, Transaction
from plankeeper.http.search_slots import search_slot
from plankeeper.resources.invoices.statistics_cache import InvoiceStatistics, StatisticsCache, StatisticsPeriods
from plankeeper.resources.plans.overview import BudgetOverview
from plankeeper.resources.service_standard.service import StandardNumbers, StandardPeriod

PREFIX = "/console"

# The access to a page: anyone; an account after its password (`password_verified`); an account that is signed in, with
# two-factor authentication if it is on (`signed_in`); an account with this or a higher role for the selected plan
# manager.
RequiredRole = Literal["anyone", "password_verified", "signed_in", "viewer", "manager", "owner"]


@dataclass(slots=True)
class PageRequest:
    """A request for a page. A form with errors is shown again with `form` as it was sent, `errors` by field, and
    `warnings` about unusual values.
    """

    db: Database
    settings: Settings
    session: Session | None
    session_token: str
    device_token: str
    single_sign_on_token: str
    home_scope: str
    address: str
    user_agent: str
    request_id: str
    origin: str  # of the console as the browser sees it, such as `https://plans.example`
    query: Form
    import_limit: SharedLimit
    single_sign_on: SingleSignOn
    on_access: OnAccess
    limit_wrong_links: Callable[[], Awaitable[None]]  # count one; raises DomainError if an address sent too many
    statistics_cache: StatisticsCache[StatisticsPeriods, InvoiceStatistics]
    budgets_cache: StatisticsCache[date, BudgetOverview]
    standard_cache: StatisticsCache[StandardPeriod, StandardNumbers]
    form: Form = field(default_factory=Form)
    errors: Mapping[str, str] = field(default_factory=dict[str, str])
    warnings: Mapping[str, FieldWarning] = field(default_factory=dict[str, FieldWarning])

    @property
    def account(self) -> Session:
        """The session, on pages that require one."""
        if self.session is None:
            raise LookupError("the page does not require a session")
        return self.session

    @property
    def plan_manager_id(self) -> UUID:
        """The selected plan manager, on pages that require a role."""
        if self.account.plan_manager_id is None:
            raise LookupError("the page does not require a role")
        return self.account.plan_manager_id

    @property
    def executor(self) -> Executor:
        """The transaction of a form; otherwise the database."""
        return self.db

    @property
    def is_search(self) -> bool:
        """Whether the page searches records, or belongs to a record of a list that a search found."""
        has_text = bool(self.query.text("q")) or "q=" in self.query.raw("list")
        return has_text and self.session is not None and self.session.plan_manager_id is not None

    def limit_search(self, *, is_search: bool) -> AbstractAsyncContextManager[None]:
        """Wait for a slot of the plan manager's searches, if this is one; raises DomainError if there are too many."""
        return search_slot(self.plan_manager_id) if is_search else nullcontext()

    @property
    def role(self) -> str | None:
        """The account's role with the selected plan manager."""
        plan_manager_id = self.session and self.session.plan_manager_id
        return self.session.roles.get(plan_manager_id) if self.session and plan_manager_id else None

    def has_role(self, role: str) -> bool:
        return policy.is_role_at_least(self.role, role)

    @property
    def role_details(self) -> RoleDetails:
        """What the role allows beyond its name."""
        plan_manager_id = self.session and self.session.plan_manager_id
        return self.session.role_details[plan_manager_id] if self.session and plan_manager_id else NO_DETAILS

    def has_permission(self, permission: Permission) -> bool:
        return policy.has_permission(self.role, self.role_details.permissions, permission)

    @property
    def participants_of(self) -> UUID | None:
        """The account manager whose participants a limited viewer sees; null for an account without a limit."""
        return self.role_details.participants_of

    @property
    def today(self) -> date:
        """The date in the plan manager's time zone."""
        return self.settings.today

    @property
    def read_context(self) -> ReadContext:
        return ReadContext(self.executor, self.plan_manager_id, self.settings)

    @property
    def actor(self) -> Actor:
        return Actor("user", str(self.account.account_id), self.account.name)

    def record_access(self, action: AccessAction, kind: AccessedKind, resource_id: UUID | None = None) -> None:
        """Record that the account views or exports a participant or an invoice."""
        self.on_access(Access(self.plan_manager_id, self.actor, action, kind, self.request_id, resource_id))

    def record_list(
        self, kind: AccessedKind, ids: Iterable[UUID], filters: Mapping[str, str], action: AccessAction = "listed"
    ) -> None:
        """Record that the account sees or exports exactly these records of a list."""
        if shown := list(dict.fromkeys(ids)):
            query = urlencode({name: text for name, text in filters.items() if text}) or None
            self.on_access(Access(self.plan_manager_id, self.actor, action, kind, self.request_id, None, query, shown))

    def record_disclosed(
        self,
        disclosed: Mapping[AccessedKind, Iterable[UUID]],
        filters: Mapping[str, str],
        action: AccessAction = "listed",
    ) -> None:
        """Record lists of several kinds."""
        for kind, ids in disclosed.items():
            self.record_list(kind, ids, filters, action)

    def with_transaction(self, tx: Transaction) -> "FormRequest":
        return FormRequest(**{each.name: getattr(self, each.name) for each in fields(self)}, tx=tx)


@dataclass(slots=True)
class FormRequest(PageRequest):
    """A submitted form with the transaction that is committed before the response is sent."""

    tx: Transaction = field(kw_only=True)
    recorded: list[UUID] = field(default_factory=list[UUID])  # the ids of the events of single writes
    disclosed: list[Disclosure] = field(default_factory=list[Disclosure])  # for the access log, after the commit

    @property
    def executor(self) -> Executor:
        return self.tx

    @property
    def write_context(self) -> WriteContext:
        return WriteContext(
            self.tx,
            self.plan_manager_id,
            self.settings,
            self.actor,
            self.request_id,
            recorded=self.recorded,
            disclosed=self.disclosed,
        )

    @property
    def undo_path(self) -> str | None:
        """The page that undoes the form's change, if that is one event."""
        return f"{PREFIX}/activity/{self.recorded[0]}/undo" if len(self.recorded) == 1 else None


@dataclass(slots=True)
class HtmlPage:
    """A template with its context."""

    template: str
    context: Mapping[str, Any] = field(default_factory=dict[str, Any])
    status: int = 200
    session_token: str | None = None  # replaces the session's token
    home_scope: str | None = None  # the scope of the home page


@dataclass(slots=True)
class Redirect:
    """A page of the console to go to; it shows `flash` once, with a link to a page that undoes it (`undo`), and `link`.

    `session_token` starts a session, an empty one ends it.

    `device_token` makes the browser a known device. `single_sign_on_token` continues a single sign-on, an empty one
    ends it.
    """

    path: str
    flash: str | None = None
    session_token: str | None = None
    undo: str | None = None
    device_token: str | None = None
    single_sign_on_token: str | None = None
    link: FlashLink | None = None


@dataclass(slots=True)
class ProviderRedirect:
    """The single sign-on provider's page to go to, and the token with which the browser comes back."""

    url: str
    single_sign_on_token: str


PageResult = HtmlPage | Redirect | ProviderRedirect | Download | Response
Handler = Callable[..., Awaitable[PageResult]]
H = TypeVar("H", bound=Handler)


@dataclass(frozen=True, slots=True)
class PageRoute:
    """One method of one path."""

    method: str
    path: str
    role: RequiredRole
    permission: Permission | None  # that managers need besides the role
    handler: Handler
    writes: bool  # whether the handler takes a FormRequest
    path_params: Mapping[str, type[UUID | str]]
    on_error: Handler | None  # the page that shows the form again with its errors
    form_path: str | None = None  # of that page
    # Whether limited viewers can open it: its handler shows only their participants, and what belongs to them. A record
    # in the path is checked before the handler runs.
    is_limited: bool = False
    checks_credentials: bool = False  # whether the handler checks a password or a code, which is slow
    calls_provider: bool = False  # whether the handler calls a single sign-on provider, which can be slow
    upload: UploadLimits | None = None  # whether the form may carry files, and which
    is_download: bool = False  # whether the handler returns a file, which it can have to make first
    extends_session: bool = True  # not for requests that a page sends by itself
    access_log: AccessedKind | None = None  # the access that is recorded for the record of the path's first id
    # The errors for constraints that the commit can violate.
    constraint_errors: Mapping[str, ConstraintErrorHandler] = field(default_factory=dict[str, ConstraintErrorHandler])


class Pages:
    """The pages of one area of the console."""

    def __init__(self) -> None:
        self.routes: list[PageRoute] = []

    def get(
        self,
        path: str,
        *,
        role: RequiredRole,
        permission: Permission | None = None,
        is_limited: bool = False,
        calls_provider: bool = False,
        access_log: AccessedKind | None = None,
    ) -> Callable[[H], H]:
        """Register a page. `access_log` is for pages of one participant or invoice: viewing them is recorded."""
        return self._register(
            "GET",
            path,
            role,
            permission,
            is_limited=is_limited,
            calls_provider=calls_provider,
            access_log=access_log,
        )

    def post(
        self,
        path: str,
        *,
        role: RequiredRole,
        permission: Permission | None = None,
        is_limited: bool = False,
        on_error: Handler | None = None,
        checks_credentials: bool = False,
        upload: UploadLimits | None = None,
        extends_session: bool = True,
        constraint_errors: Mapping[str, ConstraintErrorHandler] | None = None,
    ) -> Callable[[H], H]:
        return self._register(
            "POST",
            path,
            role,
            permission,
            on_error,
            is_limited=is_limited,
            checks_credentials=checks_credentials,
            upload=upload,
            extends_session=extends_session,
            constraint_errors=constraint_errors or {},
        )

    def _register(
        self,
        method: str,
        path: str,
        role: RequiredRole,
        permission: Permission | None = None,
        on_error: Handler | None = None,
        **flags: Any,
    ) -> Callable[[H], H]:
        def decorator(handler: H) -> H:
            hints = get_type_hints(handler)
            request, *path_names = inspect.signature(handler).parameters
            writes, path_params = hints[request] is FormRequest, {name: hints[name] for name in path_names}
            placeholders = set[str](re.findall(r"\{(\w+)\}", path))
            if placeholders != set(path_params):
                raise TypeError(f"{handler}: the path has {placeholders}, the signature {set(path_params)}")
            if writes and method == "GET":
                raise TypeError(f"{handler}: a GET handler cannot take a FormRequest")
            form = next(
                (each for each in self.routes if on_error and each.handler is on_error and each.method == "GET"), None
            )
            if form and form.access_log:  # it shows the form again
                flags["access_log"] = form.access_log
            form_path = form.path if form else None
            flags["is_download"] = hints["return"] is Download
            required = (role, permission, handler)
            route = PageRoute(method, PREFIX + path, *required, writes, path_params, on_error, form_path, **flags)
            self.routes.append(route)
            return handler

        return decorator
