"""`plankeeper accounts`: created with a password or invited, listed, removed."""

from collections.abc import Callable
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from plankeeper.access.accounts import invitations, sessions
from plankeeper.access.accounts.invitations import invitation_path
from plankeeper.access.accounts.schemas import LoginResult
from support.logins import FailedLogin, login_outcome
from support.program import run_plankeeper
from support.server import RunningServer

PASSWORD = "nine violet umbrellas"


class AccountsCommand:
    """The command, for one plan manager."""

    def __init__(self, server: RunningServer, plan_manager_id: UUID) -> None:
        self.server, self.plan_manager_id = server, plan_manager_id
        self.email = f"{uuid7().hex}@example.com"

    def run(self, *arguments: str, stdin: bytes | None = None) -> tuple[int, str, str]:
        done = run_plankeeper("accounts", *arguments, stdin=stdin, PLANKEEPER_DATABASE_URL=self.server.dsn)
        return done.returncode, done.stdout, done.stderr

    def create(self, *more: str, role: str = "owner", stdin: bytes | None = None) -> tuple[int, str, str]:
        whose = ("--plan-manager", str(self.plan_manager_id))
        return self.run("create", "--email", self.email, "--name", "Ada O", *whose, "--role", role, *more, stdin=stdin)

    def lines(self) -> list[str]:
        code, out, _ = self.run("list")
        assert code == 0
        return [line for line in out.splitlines() if self.email in line]

    def sign_in(self) -> LoginResult | FailedLogin:
        work = sessions.sign_in(self.server.db, self.server.settings, self.email, PASSWORD, "", "")
        return self.server.run(login_outcome(work))


@pytest.fixture
def accounts(server: RunningServer, new_plan_manager: Callable[[], UUID]) -> AccountsCommand:
    return AccountsCommand(server, new_plan_manager())


def test_an_account_with_a_password_can_sign_in_and_is_listed_and_removed(accounts: AccountsCommand) -> None:
    code, out, err = accounts.create("--password-stdin", stdin=f"{PASSWORD}\n".encode())
    assert (code, err) == (0, "")
    ident = str(UUID(out.strip()))
    assert isinstance(accounts.sign_in(), LoginResult)
    assert accounts.lines() == [f"{ident}  {accounts.email}  password only  owner:{accounts.plan_manager_id}  Ada O"]
    assert accounts.run("remove", accounts.email.upper(), "--plan-manager", str(accounts.plan_manager_id)) == (
        0,
        "Removed: Ada O\n",
        "",
    )
    assert accounts.lines() == []
    assert accounts.sign_in() == FailedLogin(0)


def test_without_a_password_an_invitation_is_created(accounts: AccountsCommand) -> None:
    code, out, err = accounts.create(role="manager")
    assert (code, err) == (0, "")
    path = out.removesuffix("\n")
    token = path.rpartition("/")[2]
    assert path == invitation_path(token)
    assert accounts.lines() == []
    server = accounts.server
    found = server.run(invitations.accept(server.db, server.settings, token, "Ada O", PASSWORD))
    assert isinstance(found, LoginResult)
    assert f"manager:{accounts.plan_manager_id}" in accounts.lines()[0]


def test_errors_are_reported_in_one_sentence_and_nothing_is_created(accounts: AccountsCommand) -> None:
    short = accounts.create("--password-stdin", stdin=b"short\n")
    assert short == (1, "", "Error: The password must be 12 to 128 characters long.\n")
    none = accounts.create("--password-stdin", stdin=b"")
    assert none[0] == 1
    accounts.email = f"no-email-{accounts.email.partition('@')[0]}"
    assert accounts.create() == (1, "", "Error: The email must be an email address, such as name@example.com.\n")
    assert accounts.lines() == []


def test_an_email_has_one_account(accounts: AccountsCommand) -> None:
    assert accounts.create("--password-stdin", stdin=PASSWORD.encode())[0] == 0
    again = accounts.create("--password-stdin", stdin=PASSWORD.encode())
    assert again[2] == "Error: The email has an account already: send an invitation instead of setting a password.\n"
    assert accounts.create()[2] == "Error: The email belongs to a person who is already a member.\n"
    assert len(accounts.lines()) == 1


def test_a_reset_restores_access_and_ends_open_sessions(accounts: AccountsCommand) -> None:
    accounts.create("--password-stdin", stdin=b"another violet umbrella\n")
    for _ in range(4):  # from the third on one must wait
        assert isinstance(accounts.sign_in(), FailedLogin)
    code, printed, err = accounts.run("reset", accounts.email)
    assert (code, err) == (0, f"Two-factor authentication of {accounts.email} is off.\n")
    server = accounts.server
    enter = sessions.sign_in(server.db, server.settings, accounts.email, printed.strip(), "", "")
    opened = server.run(enter)
    assert isinstance(opened, LoginResult)
    done = accounts.run("reset", accounts.email.upper(), "--password-stdin", stdin=PASSWORD.encode())
    said = f"Two-factor authentication of {accounts.email.upper()} is off.\n"
    assert done == (0, f"The password of {accounts.email.upper()} was changed.\n", said)
    assert server.run(sessions.verify_session(server.db, opened.token)) is None
    assert isinstance(accounts.sign_in(), LoginResult)


def test_a_reset_disables_two_factor_on_request(accounts: AccountsCommand) -> None:
    ident = UUID(accounts.create("--password-stdin", stdin=PASSWORD.encode())[1].strip())
    server = accounts.server
    server.run(server.db.execute("update accounts set totp_secret = $2 where id = $1", ident, "A" * 32))
    code, _, err = accounts.run("reset", accounts.email)
    assert (code, "is on: signing in requires a code. --disable-two-factor turns it off." in err) == (0, True)
    assert "two-factor" in accounts.lines()[0]
    assert (
        accounts.run("reset", accounts.email, "--disable-two-factor", "--password-stdin", stdin=PASSWORD.encode())[0]
        == 0
    )
    assert "password only" in accounts.lines()[0]
    entered = accounts.sign_in()
    assert isinstance(entered, LoginResult)
    assert not entered.two_factor_pending


def test_an_impossible_reset_reports_the_reason_and_changes_nothing(accounts: AccountsCommand) -> None:
    nobody = accounts.run("reset", accounts.email)
    assert nobody == (
        1,
        "",
        f"Error: There is no account with the email {accounts.email}. See `plankeeper accounts list`.\n",
    )
    accounts.create("--password-stdin", stdin=PASSWORD.encode())
    for wrong in (b"short\n", b""):
        rejected = accounts.run("reset", accounts.email, "--password-stdin", stdin=wrong)
        assert rejected == (1, "", "Error: The password must be 12 to 128 characters long.\n")
    assert isinstance(accounts.sign_in(), LoginResult)


def test_an_unknown_plan_manager_or_account_is_reported(accounts: AccountsCommand) -> None:
    nobody = "00000000-0000-0000-0000-000000000001"
    gone = accounts.run("remove", accounts.email)
    assert gone == (
        1,
        "",
        (
            f"Error: There is no account with the email {accounts.email} and such a role."
            " See `plankeeper accounts list`.\n"
        ),
    )
    accounts.create("--password-stdin", stdin=PASSWORD.encode())
    assert accounts.run("remove", accounts.email, "--plan-manager", nobody)[0] == 1
    assert len(accounts.lines()) == 1
    accounts.plan_manager_id = UUID(nobody)
    accounts.email = f"other-{accounts.email}"
    assert accounts.create()[2].startswith(f"Error: There is no plan manager {nobody}.")
