"""The settings of the approval by participants: reminders, and approval without an answer."""

from plankeeper.console.shell.forms import Form, parse_number
from plankeeper.console.shell.routing import PREFIX, FormRequest, HtmlPage, PageRequest, Pages, Redirect
from plankeeper.core.errors import ValidationError
from plankeeper.resources.office_settings import service
from plankeeper.resources.office_settings import store as office_settings
from plankeeper.resources.office_settings.schemas import MAX_APPROVAL_DAYS

pages = Pages()

APPROVAL_URL = f"{PREFIX}/settings/approval"
FIELDS = ("approval_reminder_days", "approval_automatic_days")


@pages.get("/settings/approval", role="owner")
async def get(request: PageRequest) -> HtmlPage:
    settings = await office_settings.get(request.executor, request.plan_manager_id)
    days = {each: "" if getattr(settings, each) is None else str(getattr(settings, each)) for each in FIELDS}
    if request.form:
        days = {each: request.form.text(each) for each in FIELDS}
    return HtmlPage("settings/approval.html", {"days": days, "max_days": MAX_APPROVAL_DAYS})


@pages.post("/settings/approval", role="owner", on_error=get)
async def save(request: FormRequest) -> Redirect:
    days = {each: _days(request.form, each) for each in FIELDS}
    wrong = {each: f"must be a number from 1 to {MAX_APPROVAL_DAYS}, or empty" for each in FIELDS if days[each] == 0}
    if wrong:
        raise ValidationError(**wrong)
    reminder_days, automatic_days = (days[each] for each in FIELDS)
    is_changed = await service.set_approval(
        request.write_context, reminder_days=reminder_days, automatic_days=automatic_days
    )
    return Redirect(APPROVAL_URL, "Saved." if is_changed else "Nothing was changed.")


def _days(form: Form, name: str) -> int | None:
    """The number of days, null for an empty field, 0 for anything else."""
    text = form.text(name)
    return parse_number(text, MAX_APPROVAL_DAYS) or 0 if text else None
