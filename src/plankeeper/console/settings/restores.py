"""After a restore: an owner confirms what was claimed and paid since the backup."""

from datetime import UTC, datetime

from plankeeper.console.shell.forms import Form
from plankeeper.console.shell.routing import PREFIX, FormRequest, HtmlPage, PageRequest, Pages, Redirect
from plankeeper.resources.office_settings import restore_store, restores
from plankeeper.resources.office_settings.number_store import NumberKind

pages = Pages()

AFTER_RESTORE_URL = f"{PREFIX}/settings/after-restore"


@pages.get("/settings/after-restore", role="owner")
async def get(request: PageRequest) -> HtmlPage:
    restore = await restore_store.find_open(request.executor, request.plan_manager_id)
    return HtmlPage("settings/after_restore.html", {"restore": restore, "form": request.form or Form(())})


@pages.post("/settings/after-restore", role="owner", on_error=get)
async def confirm(request: FormRequest) -> Redirect:
    numbers: dict[NumberKind, str] = {
        "claim_batch": request.form.text("claim_batch"),
        "payment_run": request.form.text("payment_run"),
        "fee_taking": request.form.text("fee_taking"),
    }
    is_confirmed = await restores.confirm(request.write_context, datetime.now(UTC), numbers)
    text = "Confirmed. Your office can claim and pay again." if is_confirmed else "Nothing was changed."
    return Redirect(AFTER_RESTORE_URL, text)
