"""Schemas of the settings of a plan manager. The event of a change has the same shape."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Annotated, Literal
from uuid import UUID

from msgspec import Meta, Struct, field

from plankeeper.resources.invoices.warnings import CodeLevel, Level
from plankeeper.resources.office_settings.service_standard import ServiceStandard

PaymentGrouping = Literal["payee", "invoice"]


class StoredSettings(Struct, kw_only=True):
    """The settings of a plan manager, without the number of its account and the levels of warnings."""

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
    registration_number: Annotated[
        str | None, Meta(description="The plan manager's registration number in claim files, or null.")
    ] = None
    abn: Annotated[str | None, Meta(description="The plan manager's ABN, or null.")] = None
    prices_include_gst: Annotated[
        bool | None,
        Meta(description="Whether claim files have unit prices with GST, or null: taxable lines aren't claimed."),
    ] = None
    result_tolerance: Annotated[
        Decimal, Meta(description="A claim that is paid with a difference of up to this, in dollars, is paid in full.")
    ] = Decimal("0.01")
    days_until_claim_is_late: Annotated[
        int, Meta(description="After how many business days a claim without a result is late.")
    ] = 5
    needs_receipts: Annotated[
        bool, Meta(description="Whether payment runs leave out claims whose money hasn't arrived.")
    ] = False
    bank_letters: Annotated[str | None, Meta(description="The three letters of the office's bank, or null.")] = None
    bank_bsb: Annotated[str | None, Meta(description="The BSB of the office's account, or null.")] = None
    bank_account_ending: Annotated[
        str | None, Meta(description="The last three digits of the office's account, or null.")
    ] = None
    bank_account_name: Annotated[str | None, Meta(description="The name of the office's account, or null.")] = None
    direct_entry_user_id: Annotated[
        str | None, Meta(description="The office's number for direct entry, or null: `000000`.")
    ] = None
    direct_entry_user_name: Annotated[str | None, Meta(description="The office's name in bank files, or null.")] = None
    direct_entry_description: Annotated[str | None, Meta(description="What bank files are, or null.")] = None
    remitter: Annotated[str | None, Meta(description="The name that payees see on their statements, or null.")] = None
    has_balancing_record: Annotated[
        bool, Meta(description="Whether bank files end with a debit of the office's account.")
    ] = False
    group_payments_by: Annotated[
        PaymentGrouping, Meta(description="Whether a payee gets one payment of a run, or one for each invoice.")
    ] = "payee"
    max_payments_in_file: Annotated[int, Meta(description="The most payments of a run.")] = 500
    needs_second_person: Annotated[
        bool,
        Meta(description="Whether somebody else than the maker of a run marks it as paid."),
    ] = False
    statement_day: Annotated[
        int | None, Meta(description="The day of the month on which statements are sent, or null: by hand.")
    ] = None
    statement_day_set_on: Annotated[date | None, Meta(description="When `statement_day` was last set, or null.")] = None
    statement_email: Annotated[
        str | None, Meta(description="The email address for questions about statements, or null.")
    ] = None
    statement_phone: Annotated[
        str | None, Meta(description="The phone number for questions about statements, or null.")
    ] = None
    statement_dispute: Annotated[
        str | None, Meta(description="What to do if a line of a statement is wrong, or null: the usual sentence.")
    ] = None
    fee_item_number: Annotated[
        str | None, Meta(description="The support item number of the office's own fee, or null.")
    ] = None
    fee_provider_id: Annotated[
        UUID | None, Meta(description="The office's own record among the providers, or null.")
    ] = None
    updated_at: Annotated[datetime, Meta(description="When the settings were last changed.")] = field(
        default_factory=lambda: datetime.fromtimestamp(0, UTC)
    )

    @property
    def service_standard(self) -> ServiceStandard:
        return ServiceStandard(self.days_to_claim, self.days_to_pay)


class OfficeSettings(StoredSettings, kw_only=True):
    """The settings of a plan manager."""

    id: Annotated[UUID, Meta(description="The plan manager's UUID.")]
    warning_levels: Annotated[
        dict[str, Level], Meta(description="The levels of warnings that differ from the usual ones, by code.")
    ] = {}


class AccountChange(OfficeSettings, kw_only=True):
    """The settings in the event of a change of the account's number, of which only the last digits are shown."""

    bank_account_changed: Annotated[bool, Meta(description="Whether the account is another one than before.")]


class SettingsRow(StoredSettings, kw_only=True):
    """A row of the settings."""

    warning_levels: list[CodeLevel]
