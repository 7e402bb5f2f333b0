"""The form of a provider."""

from datetime import UTC, datetime
from uuid import UUID

from stdnum.au import abn

from plankeeper.console.components.edit_forms import (
    EditedRecord,
    find_changes,
    form_from,
    new_implausible,
    require_confirmed,
)
from plankeeper.console.components.fields import STATE_OPTIONS, FormField, FormSection
from plankeeper.console.shell.forms import Form, without_spaces
from plankeeper.console.shell.routing import PREFIX, FormRequest
from plankeeper.core.fields import apply_patch
from plankeeper.core.soft_validation import ValueWarning
from plankeeper.core.validation import known_fields
from plankeeper.resources.providers import queries
from plankeeper.resources.providers.rules import find_value_warnings
from plankeeper.resources.providers.schemas import Provider, ProviderListQuery, ProviderUpdate

PROVIDERS_URL = f"{PREFIX}/providers"
FORM = FormSection(
    ProviderUpdate,
    "Provider",
    (
        FormField("entity_name"),
        (
            FormField("abn", "abn", hint="11 digits, for example 51 824 753 556"),
            FormField("ndis_provider_number", hint="The number of the registration"),
            FormField("email", "email", hint="For example, name@example.com"),
            FormField("primary_phone_number", "phone", hint="With the area code"),
            FormField("remittance_email", "email", hint="For remittance advice, for example pay@example.com"),
        ),
        FormField("address"),
        (
            FormField("city"),
            FormField("state", "select", options=STATE_OPTIONS),
            FormField("postcode", "digits", hint="4 digits"),
        ),
        FormField("active", "checkbox"),
    ),
)
FIELDS = {each.name: each for each in FORM.all_fields}


async def plausible_change(request: FormRequest, before: Provider, *, is_new: bool = False) -> ProviderUpdate:
    """The change of a form; raises FormError for errors, and for warnings that the person hasn't confirmed."""
    current = provider_form(before)
    form = without_spaces(request.form, "abn", current, abn.is_valid)
    change, errors = find_changes(ProviderUpdate, form, current)
    after = apply_patch(change, before)
    implausible = new_implausible([] if is_new else find_value_warnings(before), find_value_warnings(after))
    if after.abn and after.abn != before.abn:
        implausible += await _find_abn_holders(request, after.abn, before.id)
    require_confirmed(request.form, implausible, errors, PROVIDERS_URL)
    return change


async def _find_abn_holders(request: FormRequest, number: str, own_id: UUID) -> list[ValueWarning]:
    """A warning about another provider with the same ABN, stored with or without spaces and hyphens."""
    query = ProviderListQuery(limit=2, abn=number)
    for other in await queries.list_page(request.tx.reader, request.plan_manager_id, query):
        if other.id != own_id:
            return [ValueWarning("abn", f"is already the ABN of {other.entity_name or 'another provider'}", other.id)]
    return []


def new_provider() -> Provider:
    """A provider with the default values."""
    now = datetime.now(UTC)
    return Provider(id=UUID(int=0), created_at=now, updated_at=now)


def empty_form() -> Form:
    """The form of a new provider with the default values."""
    return form_from(ProviderUpdate, new_provider())


def edited_provider(provider: Provider) -> EditedRecord:
    return EditedRecord("provider", provider.id, provider.updated_at, known_fields(ProviderUpdate))


def provider_form(provider: Provider) -> Form:
    return form_from(ProviderUpdate, provider)
