"""The settings of the office: approval, the service standard, statements, claims and payments, and its own fee."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from plankeeper.console.components.labels import PAYMENT_GROUPINGS
from plankeeper.console.shell.forms import Form
from plankeeper.console.shell.routing import PREFIX, FormRequest, HtmlPage, PageRequest, Pages, Redirect
from plankeeper.core.errors import ValidationError
from plankeeper.resources.fees import store as fees
from plankeeper.resources.office_settings import parsers, service, store
from plankeeper.resources.office_settings.schemas import OfficeSettings
from plankeeper.resources.support_items import store as support_items

Context = Mapping[str, Any]

pages = Pages()

GST_CHOICES = {"": "Undecided: lines with GST aren’t claimed", "yes": "Prices with GST", "no": "Prices without GST"}
SUGGESTED_STATEMENT_DAY = 3


async def _no_context(_request: PageRequest, _settings: OfficeSettings) -> Context:
    return {}


def add_settings_page(
    name: str,
    fields: parsers.Parsers,
    message: str = "Settings saved.",
    *,
    load_context: Callable[[PageRequest, OfficeSettings], Awaitable[Context]] = _no_context,
    save: Callable[[FormRequest, Mapping[str, str]], Awaitable[bool]] | None = None,
) -> None:
    """Register the form of some settings. `save` is for settings with rules of their own."""
    path = f"/settings/{name}"

    async def get(request: PageRequest) -> HtmlPage:
        settings = await store.get(request.executor, request.plan_manager_id)
        form = request.form or Form(parsers.to_texts(settings, fields).items())
        context = {"form": form, **await load_context(request, settings)}
        return HtmlPage(f"settings/{name.replace('-', '_')}.html", context)

    async def update(request: FormRequest) -> Redirect:
        texts = {each: request.form.text(each) for each in request.form}
        if save:
            is_changed = await save(request, texts)
        else:
            is_changed = await service.set_values(request.write_context, parsers.parse_values(fields, texts))
        return Redirect(PREFIX + path, message if is_changed else "Nothing was changed.")

    pages.get(path, role="owner")(get)
    pages.post(path, role="owner", on_error=get)(update)


async def _statements_context(_request: PageRequest, _settings: OfficeSettings) -> Context:
    return {
        "max_day": parsers.MAX_STATEMENT_DAY,
        "max_phone": parsers.MAX_STATEMENT_PHONE,
        "max_dispute": parsers.MAX_STATEMENT_DISPUTE,
        "suggested_day": SUGGESTED_STATEMENT_DAY,
    }


async def _save_statements(request: FormRequest, texts: Mapping[str, str]) -> bool:
    return await service.set_statements(request.write_context, parsers.parse_values(parsers.STATEMENTS, texts))


async def _claims_and_payments_context(request: PageRequest, settings: OfficeSettings) -> Context:
    return {
        "settings": settings,
        "previews": {} if request.form else parsers.bank_previews(settings),
        "gst_choices": GST_CHOICES,
        "groupings": PAYMENT_GROUPINGS,
    }


async def _save_claims_and_payments(request: FormRequest, texts: Mapping[str, str]) -> bool:
    before = await store.get(request.tx, request.plan_manager_id)
    parsed = parsers.parse_claims_and_payments(texts, has_account=before.bank_account_ending is not None)
    return await service.set_claims_and_payments(request.write_context, parsed)


async def _fees_context(request: PageRequest, settings: OfficeSettings) -> Context:
    number = settings.fee_item_number
    items = await support_items.get_in_force(request.executor, {(number, request.today)} if number else set())
    return {
        "abn": settings.abn,
        "choices": {"": "Not set"} | await _list_own_providers(request, settings),
        "item": next((each.name for each in items.values()), None),  # null if it isn't in force
        "max_length": parsers.MAX_FEE_ITEM,
    }


async def _list_own_providers(request: PageRequest, settings: OfficeSettings) -> dict[str, str]:
    """The names of the providers with the office's ABN, by id."""
    if settings.abn is None:
        return {}
    found = await fees.list_own_providers(request.executor, request.plan_manager_id, settings.abn)
    return {str(each.id): each.name for each in found}


async def _save_fees(request: FormRequest, texts: Mapping[str, str]) -> bool:
    values = parsers.parse_values(parsers.FEES, texts)
    number, provider_id = values["fee_item_number"], values["fee_provider_id"]
    settings = await store.get(request.tx, request.plan_manager_id)
    if provider_id and str(provider_id) not in await _list_own_providers(request, settings):
        raise ValidationError(fee_provider_id="must be a provider with your ABN")
    if number and not await support_items.list_known(request.tx, [number]) and await _has_catalogue(request):
        raise ValidationError(fee_item_number="must be in the support catalogue")
    return await service.set_values(request.write_context, values)


async def _has_catalogue(request: FormRequest) -> bool:
    return (await support_items.get_catalogue(request.tx)).revision > 0


add_settings_page("approval", parsers.APPROVAL, "Saved.")
add_settings_page("service-standard", parsers.SERVICE_STANDARD, "Service standard saved.")
add_settings_page("statements", parsers.STATEMENTS, "Saved.", load_context=_statements_context, save=_save_statements)
add_settings_page("fees", parsers.FEES, load_context=_fees_context, save=_save_fees)
add_settings_page(
    "claims-and-payments",
    parsers.CLAIMS_AND_PAYMENTS,
    load_context=_claims_and_payments_context,
    save=_save_claims_and_payments,
)
