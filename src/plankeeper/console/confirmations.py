"""Warnings about unusual values, shown before they are saved. The person corrects the values, or saves them anyway."""

import hashlib
from collections.abc import Iterable, Sequence

from plankeeper.console.forms import FieldWarning, Form, FormError
from plankeeper.core.dates import normalize_date
from plankeeper.core.errors import FieldError
from plankeeper.core.json import to_json
from plankeeper.core.soft_validation import ValueWarning

CONFIRMED_FIELD = "confirmed_warning"  # the hidden fields with the warnings that were shown
SAVE_ANYWAY_FIELD = "save_anyway"  # the button that confirms them


def require_confirmed(
    form: Form, implausible: Iterable[ValueWarning], errors: Sequence[FieldError] = (), records_url: str = ""
) -> None:
    """Raises FormError for errors, and for warnings unless the person has seen them and saves anyway.

    A warning about another record links to it below `records_url`.
    """
    invalid = {each.field for each in errors}
    warnings = dict[str, FieldWarning]()
    for each in implausible:
        if each.field not in invalid:
            warnings[each.field] = _build_warning(form, each, warnings.get(each.field), records_url)
    shown = set(form.getlist(CONFIRMED_FIELD)) if form.text(SAVE_ANYWAY_FIELD) else set[str]()
    if errors or any(each.token not in shown for each in warnings.values()):
        raise FormError(errors, warnings)


def new_implausible(before: Iterable[ValueWarning], after: Iterable[ValueWarning]) -> list[ValueWarning]:
    """The warnings that a change causes, without those that the record had before."""
    known = set(before)
    return [each for each in after if each not in known]


def _build_warning(form: Form, found: ValueWarning, earlier: FieldWarning | None, records_url: str) -> FieldWarning:
    """The warning about a field, together with an earlier one about the same field."""
    message = f"{earlier.message}, and {found.message}" if earlier else found.message
    values = [normalize_date(text) for text in form.getlist(found.field)]  # the page shows dates in its own format
    content = to_json([found.field, message, values]).encode()
    token = hashlib.blake2b(content, digest_size=16).hexdigest()
    url = f"{records_url}/{found.record_id}" if found.record_id else earlier.url if earlier else ""
    return FieldWarning(message, token, url, "View the other record" if url else "")
