"""Warnings about unusual values of a provider. The console and imports show them before saving."""

from collections.abc import Iterator
from typing import Protocol

from stdnum.au import abn as abn_format

from plankeeper.core.formatting import plain_number
from plankeeper.core.soft_validation import ValueWarning, find_implausible_phone, find_implausible_postcode


class PlausibleFields(Protocol):
    """The fields of a provider that the rules read."""

    @property
    def entity_name(self) -> str | None: ...
    @property
    def abn(self) -> str | None: ...
    @property
    def primary_phone_number(self) -> str | None: ...
    @property
    def postcode(self) -> str | None: ...
    @property
    def state(self) -> str | None: ...


def find_value_warnings(provider: PlausibleFields) -> list[ValueWarning]:
    """Warnings about unusual values, in the order of the form. Other records are not read."""
    return [
        *_find_implausible_identity(provider),
        *find_implausible_phone("primary_phone_number", provider.primary_phone_number),
        *find_implausible_postcode(provider.postcode, provider.state),
    ]


def _find_implausible_identity(provider: PlausibleFields) -> Iterator[ValueWarning]:
    if not (provider.entity_name or "").strip():
        yield ValueWarning("entity_name", "The provider has no name")
    digits = plain_number((provider.abn or "").strip())
    if digits and not (len(digits) == 11 and digits.isascii() and digits.isdecimal()):
        yield ValueWarning("abn", "should have 11 digits, such as 51 824 753 556")
    elif digits and not abn_format.is_valid(digits):
        yield ValueWarning("abn", "has a wrong digit: its check digits don’t match")
