"""The service standard: the business days from receipt to claim, and to payment."""

from plankeeper.console.shell.forms import Form, parse_number
from plankeeper.console.shell.routing import PREFIX, FormRequest, HtmlPage, PageRequest, Pages, Redirect
from plankeeper.core.errors import ValidationError
from plankeeper.resources.office_settings import service
from plankeeper.resources.office_settings import store as office_settings
from plankeeper.resources.office_settings.service_standard import MAX_DAYS, ServiceStandard

pages = Pages()

SERVICE_STANDARD_URL = f"{PREFIX}/settings/service-standard"


@pages.get("/settings/service-standard", role="owner")
async def get(request: PageRequest) -> HtmlPage:
    settings = await office_settings.get(request.executor, request.plan_manager_id)
    stored = Form((name, str(days)) for name, days in settings.service_standard._asdict().items())
    return HtmlPage("settings/service_standard.html", {"form": request.form or stored})


@pages.post("/settings/service-standard", role="owner", on_error=get)
async def update(request: FormRequest) -> Redirect:
    names = ServiceStandard._fields
    days = {name: parse_number(request.form.text(name), MAX_DAYS) for name in names}
    wrong = {name: f"must be a whole number from 0 to {MAX_DAYS}" for name in names if days[name] is None}
    if wrong:
        raise ValidationError(**wrong)
    standard = ServiceStandard(*(days[name] or 0 for name in names))
    is_changed = await service.set_service_standard(request.write_context, standard)
    return Redirect(SERVICE_STANDARD_URL, "Service standard saved." if is_changed else "Nothing was changed.")
