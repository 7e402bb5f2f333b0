"""The table of pages: what each needs of who asks, what its handler takes, and what it answers."""

import inspect
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, get_type_hints
from uuid import UUID

from plankeeper.accounts import policy, sessions
from plankeeper.console.forms import Form
from plankeeper.database.client import Database, Transaction
from plankeeper.http.context import Actor, Read, Write
from plankeeper.settings import Settings

PREFIX = "/console"

# Who may see a page: anyone; who has given a password (`half`) and the second step too (`account`); and from there
# on a role with the plan manager that was chosen.
Need = Literal["anyone", "half", "account", "viewer", "manager", "owner"]


@dataclass(slots=True)
class Look:
    """A page that is looked at. A form that was refused comes back with it: `form` as sent, `faults` by field."""

    db: Database
    settings: Settings
    session: sessions.Session | None
    token: str
    address: str
    user_agent: str
    request_id: str
    origin: str  # where the console is for this browser, such as `https://plans.example`
    query: Form
    form: Form = field(default_factory=Form)
    faults: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def account(self) -> sessions.Session:
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
        chosen = self.session and self.session.plan_manager_id
        return self.session.roles.get(chosen) if self.session and chosen else None

    def may(self, role: str) -> bool:
        return policy.may(self.role, role)

    @property
    def read(self) -> Read:
        return Read(self.db, self.plan_manager_id, self.settings)


@dataclass(slots=True)
class Act(Look):
    """A form that was sent, in the one transaction that is committed before it is answered."""

    tx: Transaction = field(kw_only=True)

    @property
    def write(self) -> Write:
        actor = Actor("user", str(self.account.account_id), self.account.name)
        return Write(self.tx, self.plan_manager_id, self.settings, actor, self.request_id)


@dataclass(slots=True)
class Page:
    """What is shown: a template with its values."""

    template: str
    values: Mapping[str, Any] = field(default_factory=dict[str, Any])
    status: int = 200


@dataclass(slots=True)
class Redirect:
    """Where to go on. `flash` is told there, once; `token` is the session from now on, and an empty one ends it."""

    path: str
    flash: str | None = None
    token: str | None = None


@dataclass(slots=True)
class Told:
    """What a page's script is answered: JSON, or nothing at all."""

    value: object = None
    status: int = 200


@dataclass(slots=True)
class Download:
    """A file that is made while it is sent, however long it is: its name, its type, its parts."""

    name: str
    content_type: str
    parts: AsyncIterator[bytes]


Shown = Page | Redirect | Told | Download
Handler = Callable[..., Awaitable[Shown]]
H = TypeVar("H", bound=Handler)


@dataclass(frozen=True, slots=True)
class Entry:
    """One method of one path."""

    method: str
    path: str
    need: Need
    handler: Handler
    acts: bool  # whether the handler takes an Act
    ids: Mapping[str, type[UUID | str]]  # in the path; a text is a secret that is looked up as it is
    again: Handler | None  # the page that shows a form again when it was refused
    guess: bool  # whether it takes what could be guessed: an address may send so many in a minute
    upload: bool  # whether the form may carry a file


class Pages:
    """The pages of one part of the console."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def get(self, path: str, *, need: Need) -> Callable[[H], H]:
        return self._define("GET", path, need)

    def post(
        self, path: str, *, need: Need, again: Handler | None = None, guess: bool = False, upload: bool = False
    ) -> Callable[[H], H]:
        return self._define("POST", path, need, again, guess=guess, upload=upload)

    def _define(
        self, method: str, path: str, need: Need, again: Handler | None = None, *, guess: bool = False,
        upload: bool = False,
    ) -> Callable[[H], H]:  # fmt: skip
        def define(handler: H) -> H:
            hints = get_type_hints(handler)
            call, *names = inspect.signature(handler).parameters
            acts, ids = hints[call] is Act, {name: hints[name] for name in names}
            in_path = set[str](re.findall(r"\{(\w+)\}", path))
            if in_path != set(ids):
                raise TypeError(f"{handler}: the path has {in_path}, the signature {set(ids)}")
            if acts and method == "GET":
                raise TypeError(f"{handler}: a page that is looked at writes nothing")
            self.entries.append(Entry(method, PREFIX + path, need, handler, acts, ids, again, guess, upload))
            return handler

        return define
