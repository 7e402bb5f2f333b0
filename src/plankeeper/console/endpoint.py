"""The life of a page, on one screen: who asks, whether the form is ours, the transaction, the answer."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any
from urllib.parse import quote

from jinja2 import Environment
from starlette.types import Receive, Scope, Send

from plankeeper.accounts import policy, sessions
from plankeeper.console import responses
from plankeeper.console.concurrency import Places
from plankeeper.console.cookies import FORM_LASTS, Cookies, new_token, same, unsigned
from plankeeper.console.forms import Form, form_of, read_form
from plankeeper.console.multipart import carries_files, read_upload
from plankeeper.console.responses import Answer
from plankeeper.console.routing import PREFIX, Act, Download, Entry, Look, Page, Redirect, Shown, Told
from plankeeper.console.templating import environment
from plankeeper.database.client import Database, unavailable
from plankeeper.http.admission import Admission, network_of
from plankeeper.http.errors import NotFound, Refusal
from plankeeper.http.instrumentation import Tell
from plankeeper.http.parsing import uuid_of
from plankeeper.http.requests import ClientGone, Visit, log
from plankeeper.settings import Settings

SIGN_IN, SECOND_STEP, CHOOSE = f"{PREFIX}/sign-in", f"{PREFIX}/second-step", f"{PREFIX}/plan-managers"
CLIENT_GONE = 499  # what the log says where there was nobody left to answer
SHOWN_AGAIN = {400: 422, 409: 409, 412: 409}  # refusals that a form can be mended for, with the status of its page
DOWNLOADS = 4  # files that one worker sends at a time: each may be of a million events
UPLOADS = 4  # files that one worker takes in at a time: they are in memory
_HOST = re.compile(r"[A-Za-z0-9.\-]+(:[0-9]+)?|\[[0-9a-fA-F:]+\](:[0-9]+)?")


class Forged(Exception):
    """A form that did not come from a page of ours."""


class Denied(Exception):
    """A page that needs a role which the account has not."""


class Frame:
    """What all pages share."""

    def __init__(self, db: Database, admission: Admission, tell: Tell, settings: Settings) -> None:
        self.db, self.admission, self.tell, self.settings = db, admission, tell, settings
        self.templates: Environment = environment(settings.time_zone)
        self.uploads, self.downloads = Places(UPLOADS), Places(DOWNLOADS)


@dataclass(slots=True)
class Caller:
    """Who asks: the session behind the cookie, and the token that forms carry."""

    cookies: Cookies
    session: sessions.Session | None = None
    flash: str | None = None
    csrf: str = ""
    has_form_cookie: bool = False

    async def recognise(self, db: Database) -> None:
        token = self.cookies.get("plankeeper")
        self.session = await sessions.session(db, token) if token else None
        if self.session:
            self.csrf = self.session.csrf
            self.flash = unsigned(token, self.cookies.get("plankeeper-flash"))
            return
        # Before anybody is signed in, a form carries what a cookie has too: another site can set neither.
        known = self.cookies.get("plankeeper-form")
        self.has_form_cookie = bool(known)
        self.csrf = known or new_token()

    def may(self, need: str) -> bool:
        """Whether the account has a role with the plan manager that it chose."""
        session = self.session
        if session is None or session.second_step_due or session.plan_manager_id is None:
            return False
        return policy.may(session.roles.get(session.plan_manager_id), need)

    @property
    def new_cookies(self) -> list[bytes]:
        """What every page that is shown sets."""
        found = list[bytes]()
        if self.csrf and self.session is None and not self.has_form_cookie:
            found.append(self.cookies.set("plankeeper-form", self.csrf, FORM_LASTS))
        if self.cookies.get("plankeeper-flash"):
            found.append(self.cookies.set("plankeeper-flash", "", 0))
        return found


class PagePath:
    """One path with its pages by method: an ASGI application. Without pages it is the one for what is not there."""

    def __init__(self, frame: Frame, path: str | None, entries: Mapping[str, Entry]) -> None:
        self._frame, self._path, self._entries = frame, path, entries

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        visit = Visit.of(scope)
        caller = Caller(Cookies.of(visit.headers.get(b"cookie", b""), secure=scope["scheme"] == "https"))
        try:
            answer = await self._respond(visit, caller, scope, receive)
        except ClientGone:
            self._frame.tell(visit, scope["method"], self._path, CLIENT_GONE)
            return
        except Exception as error:  # noqa: BLE001 - whatever happens, somebody looks at a page
            answer = responses.rendered(self._frame.templates, _troubled(error, visit), None, caller)
            answer.headers += _told(error, self._entries)
        head = scope["method"] == "HEAD"
        if isinstance(answer, Download):
            with self._frame.downloads:
                await responses.send_file(answer, visit.request_id, receive, send, head=head)
        else:
            await responses.send(answer, visit.request_id, send, head=head)
        self._frame.tell(visit, scope["method"], self._path, 200 if isinstance(answer, Download) else answer.status)

    async def _respond(self, visit: Visit, caller: Caller, scope: Scope, receive: Receive) -> Answer | Download:
        form = await self._form(visit, caller, receive) if scope["method"] == "POST" else Form()
        with self._frame.admission:
            await caller.recognise(self._frame.db)
            if caller.session:
                visit.plan_manager_id = caller.session.plan_manager_id
            entry = self._entry(scope)
            if entry.method == "POST":
                _require_own(visit.headers, scope["scheme"], form.secret("csrf"), caller.csrf)
            onward = _onward(entry, caller.session, scope)
            if onward:
                return responses.redirected(onward, caller)
            if entry.guess:
                await self._frame.admission.count_guess(scope)
            look = self._look(visit, caller, scope, form)
            if entry.need in ("viewer", "manager", "owner") and not look.may(entry.need):
                raise Denied
            found = await self._run(entry, look, _ids(entry, scope))
            if isinstance(found, Download):
                self._frame.downloads.require()
                return found
            if isinstance(found, Redirect):
                return responses.redirected(found, caller)
            if isinstance(found, Told):
                return responses.told(found)
            return responses.rendered(self._frame.templates, found, look, caller)

    async def _form(self, visit: Visit, caller: Caller, receive: Receive) -> Form:
        entry = self._entries.get("POST")
        if entry is None or not entry.upload or not carries_files(visit.headers):
            return await read_form(visit.headers, receive)
        # A file is taken in from who may send one alone. What others sent is not looked at: it is no form of ours.
        with self._frame.admission:
            await caller.recognise(self._frame.db)
        if not caller.may(entry.need):
            return Form()
        with self._frame.uploads:
            return await read_upload(visit.headers, receive)

    def _entry(self, scope: Scope) -> Entry:
        if b"%2f" in scope.get("raw_path", b"").lower() or not self._entries:
            raise NotFound
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        if method not in self._entries:
            raise Refusal("method_not_allowed", "The page cannot be asked for in this way.")
        return self._entries[method]

    def _look(self, visit: Visit, caller: Caller, scope: Scope, form: Form) -> Look:
        agent = visit.headers.get(b"user-agent", b"").decode("latin-1")[:300]
        return Look(
            db=self._frame.db, settings=self._frame.settings, session=caller.session,
            token=caller.cookies.get("plankeeper"), address=network_of(scope), user_agent=agent,
            request_id=visit.request_id.decode(), origin=_origin(visit.headers, scope["scheme"]),
            query=form_of(scope["query_string"]), form=form,
        )  # fmt: skip

    async def _run(self, entry: Entry, look: Look, ids: Mapping[str, Any]) -> Shown:
        """The page's handler; what acts has one transaction, and a refused form is shown again after its rollback."""
        try:
            if not entry.acts:
                return await entry.handler(look, **ids)
            async with self._frame.db.transaction() as tx:
                known = {each.name: getattr(look, each.name) for each in fields(Look)}
                return await entry.handler(Act(**known, tx=tx), **ids)
        except Refusal as refusal:
            if entry.again is None or refusal.status not in SHOWN_AGAIN:
                raise
            faults = {each.field: each.message for each in refusal.errors or ()} or {"form": refusal.detail}
            look.faults = faults
            found = await entry.again(look, **ids)
            return replace(found, status=SHOWN_AGAIN[refusal.status]) if isinstance(found, Page) else found


def _origin(headers: Mapping[bytes, bytes], scheme: str) -> str:
    """Of a host that is one: it stands in a command that people copy into a shell."""
    host = headers.get(b"host", b"").decode("latin-1")
    return f"{scheme}://{host}" if _HOST.fullmatch(host) else "https://your-server"


def _ids(entry: Entry, scope: Scope) -> dict[str, Any]:
    """The ids in a path; what is no id is no page."""
    texts: dict[str, str] = scope["path_params"]
    found = {name: texts[name] if kind is str else uuid_of(texts[name]) for name, kind in entry.ids.items()}
    if None in found.values():
        raise NotFound
    return found


def _require_own(headers: Mapping[bytes, bytes], scheme: str, sent: str, csrf: str) -> None:
    """Raises Forged where a form comes from elsewhere, or without the token of the session."""
    schemes = ("https",) if scheme == "https" else ("http", "https")  # what ends TLS may not say that it did
    own = [f"{each}://".encode() + headers.get(b"host", b"") for each in schemes]
    if headers.get(b"origin") not in own or not csrf or not same(sent, csrf):
        raise Forged


def _onward(entry: Entry, session: sessions.Session | None, scope: Scope) -> Redirect | None:
    """Where who asks must go first; null where nowhere."""
    if entry.need == "anyone":
        return None
    if session is None:
        wanted = scope["path"] + (f"?{scope['query_string'].decode('latin-1')}" if scope["query_string"] else "")
        home = wanted == PREFIX or entry.method != "GET"
        return Redirect(SIGN_IN if home else f"{SIGN_IN}?next={quote(wanted, safe='/')}")
    if entry.need == "half":
        return None
    if session.second_step_due:
        return Redirect(SECOND_STEP)
    if entry.need != "account" and session.plan_manager_id not in session.roles:
        return Redirect(CHOOSE)
    return None


def _troubled(error: Exception, visit: Visit) -> Page:
    """The page for whatever went wrong; what was not foreseen is logged, and told to nobody else."""
    request_id = visit.request_id.decode()
    if isinstance(error, Forged):
        which, status = "forged", 403
    elif isinstance(error, Denied):
        which, status = "denied", 403
    elif isinstance(error, Refusal):
        which, status = {404: "not_found", 429: "often", 503: "busy"}.get(error.status, "refused"), error.status
    elif unavailable(error):
        log.warning("request %s: the database is not available: %r", request_id, error)
        which, status = "busy", 503
    else:
        log.error("request %s failed", request_id, exc_info=error)
        which, status = "failed", 500
    detail = error.detail if isinstance(error, Refusal) else ""
    return Page("trouble.html", {"which": which, "detail": detail, "request_id": request_id}, status)


def _told(error: Exception, entries: Mapping[str, Entry]) -> list[tuple[bytes, bytes]]:
    if isinstance(error, Refusal) and error.status == 405:
        return [(b"allow", ", ".join(sorted([*entries, "HEAD"] if "GET" in entries else entries)).encode())]
    if isinstance(error, Refusal) and error.status in (429, 503):
        return [(b"retry-after", (error.headers or {}).get("retry-after", "1").encode())]
    return []
