"""Schemas of the settings of a plan manager. The event of a change has the same shape."""

from datetime import UTC, datetime
from typing import Annotated
from uuid import UUID

from msgspec import Meta, Struct, field

from plankeeper.resources.invoices.warnings import Level
from plankeeper.resources.office_settings.service_standard import ServiceStandard

MAX_APPROVAL_DAYS = 90


class OfficeSettings(Struct, kw_only=True):
    """The settings of a plan manager."""

    id: Annotated[UUID, Meta(description="The plan manager's UUID.")]
    warning_levels: Annotated[
        dict[str, Level], Meta(description="The levels of warnings that differ from the usual ones, by code.")
    ] = {}
    duplicates_need_participant: Annotated[
        bool, Meta(description="Whether `possible_duplicate` compares only invoices of the same participant.")
    ] = False
    approval_reminder_days: Annotated[
        int | None, Meta(description="After how many days without an answer a reminder is mailed, or null.")
    ] = None
    approval_automatic_days: Annotated[
        int | None, Meta(description="After how many days without an answer an invoice is approved, or null.")
    ] = None
    days_to_claim: Annotated[
        int, Meta(description="The service standard: the business days from receipt to claim.")
    ] = ServiceStandard().days_to_claim
    days_to_pay: Annotated[int, Meta(description="The service standard: the business days from claim to payment.")] = (
        ServiceStandard().days_to_pay
    )
    updated_at: Annotated[datetime, Meta(description="When the settings were last changed.")] = field(
        default_factory=lambda: datetime.fromtimestamp(0, UTC)
    )

    @property
    def service_standard(self) -> ServiceStandard:
        return ServiceStandard(self.days_to_claim, self.days_to_pay)
