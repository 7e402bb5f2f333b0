"""The columns of imports and exports of providers that have their bank details."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from uuid import UUID

from msgspec.structs import asdict

from plankeeper.core.encryption.bank_accounts import BankAccount
from plankeeper.core.errors import ValidationError
from plankeeper.core.settings import Settings
from plankeeper.database.client import Transaction
from plankeeper.resources.bank_details.accounts import Payee, decrypt_account
from plankeeper.resources.bank_details.parsing import parse_account
from plankeeper.resources.bank_details.store import list_provider_accounts
from plankeeper.resources.providers import store
from plankeeper.resources.providers.schemas import ProviderExport, ProviderImport, ProviderRecord
from plankeeper.resources.upsert import ImportRow, InvalidRowsError, RowError

BANK_COLUMNS = ("bank_bsb", "bank_account_number", "bank_account_name")
NUMBER_COLUMN = "bank_account_number"


def has_bank_details(values: ProviderImport) -> bool:
    """Whether a row has bank details."""
    return any(isinstance(getattr(values, name), str) for name in BANK_COLUMNS)


def parse_import(row: ImportRow[ProviderImport]) -> BankAccount | None:
    """The bank account of a row; null if it has none. Raises InvalidRowsError."""
    if not has_bank_details(row.values):
        return None
    texts = [getattr(row.values, name) for name in BANK_COLUMNS]
    missing = [name for name, text in zip(BANK_COLUMNS, texts, strict=True) if not isinstance(text, str)]
    if missing:
        message = f"is required, because the row has {' or '.join(sorted({*BANK_COLUMNS} - {*missing}))}"
        raise InvalidRowsError([RowError(row.line_number, name, message) for name in missing])
    try:
        return parse_account(*texts, prefix="bank_")
    except ValidationError as error:
        raise InvalidRowsError([RowError(row.line_number, each.field, each.message) for each in error.errors]) from None


async def export(tx: Transaction, settings: Settings, plan_manager_id: UUID) -> AsyncGenerator[list[ProviderExport]]:
    """All providers with their current bank details."""
    async with aclosing(store.export(tx, plan_manager_id)) as batches:
        async for records in batches:
            yield await _with_details(tx, settings, plan_manager_id, records)


async def _with_details(
    tx: Transaction, settings: Settings, plan_manager_id: UUID, records: Sequence[ProviderRecord]
) -> list[ProviderExport]:
    stored = await list_provider_accounts(tx, plan_manager_id, [each.id for each in records])
    accounts = {
        id_: decrypt_account(settings, plan_manager_id, Payee("provider", id_), each) for id_, each in stored.items()
    }
    return [
        ProviderExport(**asdict(each), **dict(zip(BANK_COLUMNS, accounts.get(each.id, ()), strict=False)))
        for each in records
    ]
