"""After a restore, an owner confirms the last numbers, and then claims and payments are open again."""

from collections.abc import Callable
from datetime import UTC, datetime
from uuid import UUID

import pytest

from plankeeper.core.errors import DomainError
from plankeeper.resources.office_settings import restores
from support.console import Account, Browser, main_text
from support.form_helpers import require_linked_errors
from support.server import RunningServer

PAGE = "/console/settings/after-restore"


@pytest.fixture
def restored(server: RunningServer, plan_manager_id: UUID) -> None:
    statement = "insert into restores (plan_manager_id, restored_at) values ($1, $2)"
    server.execute_as_owner(statement, plan_manager_id, datetime(2026, 11, 3, 1, 2, 3, tzinfo=UTC))


def last_numbers(server: RunningServer, plan_manager_id: UUID) -> list[str]:
    statement = "select kind || ' ' || last from office_numbers where plan_manager_id = $1 order by kind"
    return server.run(server.db.rows(str, statement, plan_manager_id))


@pytest.mark.usefixtures("restored")
def test_nothing_is_claimed_until_an_owner_confirms(
    owner: Browser,
    server: RunningServer,
    plan_manager_id: UUID,
    new_browser: Callable[..., Browser],
    new_account: Callable[..., Account],
) -> None:
    assert "restored from a backup on 3 Nov 2026" in main_text(owner.get(PAGE).text)
    assert "Record approvals and rejections of invoices since the backup again." in main_text(owner.get(PAGE).text)
    with pytest.raises(DomainError, match="restored from a backup at 2026-11-03T01:02:03Z") as caught:
        server.run(restores.require_confirmed(server.db, plan_manager_id))
    assert caught.value.code == "invalid_transition"
    manager = new_browser()
    manager.sign_in(new_account("manager"))
    assert manager.get(PAGE).status_code == 403
    done = owner.submit(PAGE, {"claim_batch": "b000123", "payment_run": "45", "fee_taking": "F000006"})
    assert "Your office can claim and pay again." in main_text(owner.get(done.headers["location"]).text)
    server.run(restores.require_confirmed(server.db, plan_manager_id))
    assert last_numbers(server, plan_manager_id) == ["claim_batch 123", "fee_taking 6", "payment_run 45"]
    again = owner.submit(PAGE, {"claim_batch": "", "payment_run": ""})
    assert "Nothing was changed." in main_text(owner.get(again.headers["location"]).text)


@pytest.mark.usefixtures("restored")
def test_numbers_are_checked(owner: Browser) -> None:
    wrong = owner.submit(PAGE, {"claim_batch": "P000123", "payment_run": "the 45th", "fee_taking": "B000123"})
    assert wrong.status_code == 422
    assert require_linked_errors(wrong.text) == ["claim_batch", "payment_run", "fee_taking"]
    assert "must be a number such as B000123" in wrong.text
    assert 'value="the 45th"' in wrong.text


def test_without_a_restore_there_is_nothing_to_confirm(owner: Browser) -> None:
    page = owner.get(PAGE).text
    assert "There is nothing to confirm." in main_text(page)
    assert "<form" not in page.split("<h1>")[1].split("</main>")[0]
