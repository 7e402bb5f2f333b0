"""The settings of statements: the day of the monthly run, the contact for questions, and how to dispute a line."""

from plankeeper.console.shell.forms import Form, parse_number
from plankeeper.console.shell.routing import PREFIX, FormRequest, HtmlPage, PageRequest, Pages, Redirect
from plankeeper.core.errors import ValidationError
from plankeeper.core.fields import is_email
from plankeeper.resources.office_settings import service
from plankeeper.resources.office_settings import store as office_settings
from plankeeper.resources.office_settings.schemas import (
    MAX_STATEMENT_DAY,
    MAX_STATEMENT_DISPUTE,
    MAX_STATEMENT_PHONE,
    StatementSettings,
)

pages = Pages()

STATEMENT_SETTINGS_URL = f"{PREFIX}/settings/statements"
SUGGESTED_DAY = 3


@pages.get("/settings/statements", role="owner")
async def get(request: PageRequest) -> HtmlPage:
    settings = await office_settings.get(request.executor, request.plan_manager_id)
    stored = Form((name, _text(getattr(settings, name))) for name in StatementSettings._fields)
    limits = {"max_day": MAX_STATEMENT_DAY, "max_phone": MAX_STATEMENT_PHONE, "max_dispute": MAX_STATEMENT_DISPUTE}
    context = {"form": request.form or stored, "suggested_day": SUGGESTED_DAY, **limits}
    return HtmlPage("settings/statements.html", context)


def _text(value: object) -> str:
    return "" if value is None else str(value)


@pages.post("/settings/statements", role="owner", on_error=get)
async def update(request: FormRequest) -> Redirect:
    texts = {name: request.form.text(name).replace("\r\n", "\n").strip() for name in StatementSettings._fields}
    day, errors = texts["statement_day"], dict[str, str]()
    if day and not parse_number(day, MAX_STATEMENT_DAY):
        errors["statement_day"] = f"must be a number from 1 to {MAX_STATEMENT_DAY}, or empty"
    if texts["statement_email"] and not is_email(texts["statement_email"]):
        errors["statement_email"] = "must be an email address, or empty"
    for name, length in (("statement_phone", MAX_STATEMENT_PHONE), ("statement_dispute", MAX_STATEMENT_DISPUTE)):
        if len(texts[name]) > length:
            errors[name] = f"must have at most {length:,} characters"
    if errors:
        raise ValidationError(**errors)
    names = ("statement_email", "statement_phone", "statement_dispute")
    new = StatementSettings(int(day) if day else None, *(texts[name] or None for name in names))
    is_changed = await service.set_statements(request.write_context, new)
    return Redirect(STATEMENT_SETTINGS_URL, "Saved." if is_changed else "Nothing was changed.")
