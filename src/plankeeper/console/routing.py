"""The table of pages: what each needs of who asks, what its handler takes, and what it answers."""

import inspect
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, get_type_hints
from uuid import UUID

from plankeeper.accounts import policy
from plankeeper.accounts.schemas import Session
from plankeeper.console.forms import Form
from plankeeper.database.client import Database, Transaction
from plankeeper.http.context import Actor, ReadContext, WriteContext
from plankeeper.settings import Settings

PREFIX = "/console"

# Who may see a page: anyone; who has given a password (`password_verified`) and two-factor authentication too (`signed_in`); and from there
# on a role with the plan manager that was chosen.
RequiredRole = Literal["anyone", "password_verified", "signed_in", "viewer", "manager", "owner"]


@dataclass(slots=True)
class PageRequest:
    """A page that is looked at. A form that was refused comes back with it: `form` as sent, `faults` by field."""

    db: Database
    settings: Settings
    session: Session | None
    session_token: str
    address: str
    user_agent: str
    request_id: str
    origin: str  # where the console is for this browser, such as `https://plans.example`
    query: Form
    form: Form = field(default_factory=Form)
    errors: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def account(self) -> Session:
        """The session, on pages that need one."""
        if self.session is None:
            raise LookupError("the page needs nobody to be signed in")
        return self.session

    @property
    def plan_manager_id(self) -> UUID:
        """The plan manager that was chosen, on pages that need a role."""
        if self.account.plan_manager_id is None:
            raise LookupError("the page needs no role")
        return self.account.plan_manager_id

    @property
    def role(self) -> str | None:
        """The role with the plan manager that was chosen."""
        plan_manager_id = self.session and self.session.plan_manager_id
        return self.session.roles.get(plan_manager_id) if self.session and plan_manager_id else None

    def has_role(self, role: str) -> bool:
        return policy.is_role_at_least(self.role, role)

    @property
    def read_context(self) -> ReadContext:
        return ReadContext(self.db, self.plan_manager_id, self.settings)


@dataclass(slots=True)
class FormRequest(PageRequest):
    """A form that was sent, in the one transaction that is committed before it is answered."""

    tx: Transaction = field(kw_only=True)

    @property
    def write_context(self) -> WriteContext:
        actor = Actor("user", str(self.account.account_id), self.account.name)
        return WriteContext(self.tx, self.plan_manager_id, self.settings, actor, self.request_id)


@dataclass(slots=True)
class HtmlPage:
    """What is shown: a template with its values."""

    template: str
    context: Mapping[str, Any] = field(default_factory=dict[str, Any])
    status: int = 200


@dataclass(slots=True)
class Redirect:
    """Where to go on. `flash` is told there, once; `token` is the session from now on, and an empty one ends it."""

    path: str
    flash: str | None = None
    session_token: str | None = None


@dataclass(slots=True)
class JsonResult:
    """What a page's script is answered: JSON, or nothing at all."""

    value: object = None
    status: int = 200


@dataclass(slots=True)
class Download:
    """A file that is made while it is sent, however long it is: its name, its type, its parts."""

    filename: str
    content_type: str
    chunks: AsyncIterator[bytes]


PageResult = HtmlPage | Redirect | JsonResult | Download
Handler = Callable[..., Awaitable[PageResult]]
H = TypeVar("H", bound=Handler)


@dataclass(frozen=True, slots=True)
class PageRoute:
    """One method of one path."""

    method: str
    path: str
    role: RequiredRole
    handler: Handler
    writes: bool  # whether the handler takes an Act
    path_params: Mapping[str, type[UUID | str]]  # in the path; a text is a secret that is looked up as it is
    on_error: Handler | None  # the page that shows a form again when it was refused
    rate_limited: bool  # whether it takes what could be guessed: an address may send so many in a minute
    upload: bool  # whether the form may carry a file


class Pages:
    """The pages of one part of the console."""

    def __init__(self) -> None:
        self.routes: list[PageRoute] = []

    def get(self, path: str, *, role: RequiredRole) -> Callable[[H], H]:
        return self._register("GET", path, role)

    def post(
        self,
        path: str,
        *,
        role: RequiredRole,
        on_error: Handler | None = None,
        rate_limited: bool = False,
        upload: bool = False,
    ) -> Callable[[H], H]:
        return self._register("POST", path, role, on_error, rate_limited=rate_limited, upload=upload)

    def _register(
        self,
        method: str,
        path: str,
        role: RequiredRole,
        on_error: Handler | None = None,
        *,
        rate_limited: bool = False,
        upload: bool = False,
    ) -> Callable[[H], H]:
        def decorator(handler: H) -> H:
            hints = get_type_hints(handler)
            request, *path_names = inspect.signature(handler).parameters
            writes, path_params = hints[request] is FormRequest, {name: hints[name] for name in path_names}
            placeholders = set[str](re.findall(r"\{(\w+)\}", path))
            if placeholders != set(path_params):
                raise TypeError(f"{handler}: the path has {placeholders}, the signature {set(path_params)}")
            if writes and method == "GET":
                raise TypeError(f"{handler}: a page that is looked at writes nothing")
            self.routes.append(
                PageRoute(method, PREFIX + path, role, handler, writes, path_params, on_error, rate_limited, upload)
            )
            return handler

        return decorator
