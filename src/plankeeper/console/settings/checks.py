"""The checks of invoices: the levels of warnings, and the progress of the check of all open invoices."""

from collections.abc import Mapping

from plankeeper.console.shell.routing import PREFIX, FormRequest, HtmlPage, PageRequest, Pages, Redirect
from plankeeper.core.errors import ValidationError
from plankeeper.resources.invoices.rechecks import get_progress
from plankeeper.resources.invoices.warnings import WARNINGS, Level, level_of
from plankeeper.resources.office_settings import service
from plankeeper.resources.office_settings import store as office_settings
from plankeeper.resources.recheck_queue import enqueue_all

pages = Pages()

CHECKS_URL = f"{PREFIX}/checks"
LEVELS: Mapping[Level, str] = {"inform": "Inform", "warn": "Warn", "block": "Block claims"}


@pages.get("/checks", role="viewer")
async def get(request: PageRequest) -> HtmlPage:
    place = (request.executor, request.plan_manager_id)
    settings = await office_settings.get(*place)
    levels = {code: level_of(code, settings.warning_levels) for code in WARNINGS}
    needs_participant = settings.duplicates_need_participant
    if request.form:
        needs_participant = bool(request.form.text("duplicates_need_participant"))
    context = {
        "progress": await get_progress(*place),
        "warnings": WARNINGS,
        "levels": levels | {code: request.form.text(code) for code in WARNINGS if request.form.text(code)},
        "choices": LEVELS,
        "needs_participant": needs_participant,
    }
    return HtmlPage("settings/checks.html", context)


@pages.post("/checks/levels", role="owner", on_error=get)
async def set_levels(request: FormRequest) -> Redirect:
    """Set the level of each warning. Open invoices are checked again in the background if one has changed."""
    form = request.form
    wrong = {code: f"must be one of {', '.join(LEVELS)}" for code in WARNINGS if form.text(code) not in LEVELS}
    if wrong:
        raise ValidationError(**wrong)
    levels: dict[str, Level] = {code: level for code in WARNINGS for level in LEVELS if form.text(code) == level}
    needs_participant = bool(form.text("duplicates_need_participant"))
    is_changed = await service.set_warnings(
        request.write_context, levels, duplicates_need_participant=needs_participant
    )
    message = "Levels saved. The open invoices are being checked again." if is_changed else "Nothing was changed."
    return Redirect(CHECKS_URL, message)


@pages.post("/checks", role="owner")
async def start(request: FormRequest) -> Redirect:
    """Queue the check, unless it is about to start or running."""
    progress = await get_progress(request.tx, request.plan_manager_id)
    if not (progress.is_queued or progress.is_running):
        await enqueue_all(request.tx, request.plan_manager_id)
    return Redirect(CHECKS_URL, "The open invoices are being checked again.")
