"""The settings of the office's own fee: its support item, and the office's record among the providers."""

from datetime import date
from typing import Any

from plankeeper.console.shell.routing import PREFIX, FormRequest, HtmlPage, PageRequest, Pages, Redirect
from plankeeper.core.errors import ValidationError
from plankeeper.core.ids import parse_uuid
from plankeeper.database.client import Executor
from plankeeper.resources.fees import store
from plankeeper.resources.office_settings import service
from plankeeper.resources.office_settings import store as office_settings
from plankeeper.resources.support_items import store as support_items

pages = Pages()

FEES_URL = f"{PREFIX}/settings/fees"
MAX_ITEM_LENGTH = 50


@pages.get("/settings/fees", role="owner")
async def get(request: PageRequest) -> HtmlPage:
    settings = await office_settings.get(request.executor, request.plan_manager_id)
    providers = await _list_providers(request.executor, request, settings.abn)
    stored = {"fee_item_number": settings.fee_item_number or "", "fee_provider_id": str(settings.fee_provider_id or "")}
    texts = {name: request.form.text(name) for name in stored} if request.form else stored
    context: dict[str, Any] = {
        "texts": texts,
        "abn": settings.abn,
        "choices": {"": "Not set"} | providers,
        "item": await _find_name(request.executor, settings.fee_item_number, request.today),
        "max_length": MAX_ITEM_LENGTH,
    }
    return HtmlPage("settings/fees.html", context)


async def _list_providers(db: Executor, request: PageRequest, abn: str | None) -> dict[str, str]:
    """The names of the providers with the office's ABN, by id."""
    found = await store.list_own_providers(db, request.plan_manager_id, abn) if abn else []
    return {str(each.id): each.name for each in found}


async def _find_name(db: Executor, number: str | None, day: date) -> str | None:
    """The name of an item in the support catalogue, or null if it isn't in force on the day."""
    found = await support_items.get_in_force(db, {(number, day)} if number else set())
    return next((each.name for each in found.values()), None)


@pages.post("/settings/fees", role="owner", on_error=get)
async def update(request: FormRequest) -> Redirect:
    number, provider = request.form.text("fee_item_number").strip(), request.form.text("fee_provider_id")
    settings = await office_settings.get(request.tx, request.plan_manager_id)
    if provider and provider not in await _list_providers(request.tx, request, settings.abn):
        raise ValidationError(fee_provider_id="must be a provider with your ABN")
    if len(number) > MAX_ITEM_LENGTH or number != "".join(number.split()):
        raise ValidationError(fee_item_number="must be a support item number, such as 14_034_0127_8_3")
    if number and await support_items.list_known(request.tx, [number]) == [] and await _has_catalogue(request):
        raise ValidationError(fee_item_number="must be in the support catalogue")
    is_changed = await service.set_fees(request.write_context, number or None, parse_uuid(provider))
    return Redirect(FEES_URL, "Settings saved." if is_changed else "Nothing was changed.")


async def _has_catalogue(request: FormRequest) -> bool:
    return (await support_items.get_catalogue(request.tx)).revision > 0
