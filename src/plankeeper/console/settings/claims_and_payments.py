"""The settings of claims and payments: the office's numbers, its bank account, and the bank's files."""

from plankeeper.console.components.labels import PAYMENT_GROUPINGS
from plankeeper.console.shell.forms import Form
from plankeeper.console.shell.routing import PREFIX, FormRequest, HtmlPage, PageRequest, Pages, Redirect
from plankeeper.resources.office_settings import service
from plankeeper.resources.office_settings import store as office_settings
from plankeeper.resources.office_settings.claims_and_payments import (
    ACCOUNT_NUMBER,
    PARSERS,
    bank_previews,
    parse,
    to_texts,
)

pages = Pages()

CLAIMS_AND_PAYMENTS_URL = f"{PREFIX}/settings/claims-and-payments"
GST_CHOICES = {"": "Undecided: lines with GST aren’t claimed", "yes": "Prices with GST", "no": "Prices without GST"}


@pages.get("/settings/claims-and-payments", role="owner")
async def get(request: PageRequest) -> HtmlPage:
    settings = await office_settings.get(request.executor, request.plan_manager_id)
    context = {
        "settings": settings,
        "form": request.form or Form(to_texts(settings).items()),
        "previews": {} if request.form else bank_previews(settings),
        "gst_choices": GST_CHOICES,
        "groupings": PAYMENT_GROUPINGS,
    }
    return HtmlPage("settings/claims_and_payments.html", context)


@pages.post("/settings/claims-and-payments", role="owner", on_error=get)
async def update(request: FormRequest) -> Redirect:
    before = await office_settings.get(request.tx, request.plan_manager_id)
    texts = {name: request.form.text(name) for name in (*PARSERS, ACCOUNT_NUMBER)}
    parsed = parse(texts, has_account=before.bank_account_ending is not None)
    is_changed = await service.set_claims_and_payments(request.write_context, parsed)
    return Redirect(CLAIMS_AND_PAYMENTS_URL, "Settings saved." if is_changed else "Nothing was changed.")
