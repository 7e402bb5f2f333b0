"""`plankeeper accounts`: made with a password or invited, listed, removed."""

from collections.abc import Callable
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from plankeeper.accounts import invitations, sessions
from plankeeper.accounts.invitations import invitation_path
from plankeeper.accounts.schemas import LoginResult
from support.logins import FailedLogin, login_outcome
from support.program import run_plankeeper
from support.server import RunningServer

PASSWORD = "nine violet umbrellas"


class UsersCommand:
    """The command, for one plan manager."""

    def __init__(self, server: RunningServer, plan_manager_id: UUID) -> None:
        self.server, self.plan_manager_id = server, plan_manager_id
        self.email = f"{uuid7().hex}@example.com"

    def run(self, *arguments: str, stdin: bytes | None = None) -> tuple[int, str, str]:
        done = run_plankeeper("users", *arguments, stdin=stdin, PLANKEEPER_DATABASE_URL=self.server.dsn)
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
def users(server: RunningServer, new_plan_manager: Callable[[], UUID]) -> UsersCommand:
    return UsersCommand(server, new_plan_manager())


def test_an_account_with_a_password_can_sign_in_and_is_listed_and_removed(users: UsersCommand) -> None:
    code, out, err = users.create("--password-stdin", stdin=f"{PASSWORD}\n".encode())
    assert (code, err) == (0, "")
    ident = str(UUID(out.strip()))
    assert isinstance(users.sign_in(), LoginResult)
    assert users.lines() == [f"{ident}  {users.email}  one step  owner:{users.plan_manager_id}  Ada O"]
    assert users.run("remove", users.email.upper(), "--plan-manager", str(users.plan_manager_id)) == (
        0,
        "Removed: Ada O\n",
        "",
    )
    assert users.lines() == []
    assert users.sign_in() == FailedLogin(0)


def test_without_a_password_an_invitation_is_created(users: UsersCommand) -> None:
    code, out, err = users.create(role="manager")
    assert (code, err) == (0, "")
    path = out.removesuffix("\n")
    token = path.rpartition("/")[2]
    assert path == invitation_path(token)
    assert users.lines() == []
    server = users.server
    found = server.run(invitations.accept(server.db, server.settings, token, "Ada O", PASSWORD))
    assert isinstance(found, LoginResult)
    assert f"manager:{users.plan_manager_id}" in users.lines()[0]


def test_errors_are_reported_in_one_sentence_and_nothing_is_created(users: UsersCommand) -> None:
    short = users.create("--password-stdin", stdin=b"short\n")
    assert short == (1, "", "Error: The password must be 12 to 128 characters long.\n")
    none = users.create("--password-stdin", stdin=b"")
    assert none[0] == 1
    users.email = f"no-email-{users.email.partition('@')[0]}"
    assert users.create() == (1, "", "Error: The email must be an email address, such as name@example.com.\n")
    assert users.lines() == []


def test_an_email_has_one_account(users: UsersCommand) -> None:
    assert users.create("--password-stdin", stdin=PASSWORD.encode())[0] == 0
    again = users.create("--password-stdin", stdin=PASSWORD.encode())
    assert again[2] == "Error: The email has an account already: without a password it gets an invitation.\n"
    assert users.create()[2] == "Error: The email belongs to somebody who has a role here.\n"
    assert len(users.lines()) == 1


def test_a_reset_restores_access_and_ends_open_sessions(users: UsersCommand) -> None:
    users.create("--password-stdin", stdin=b"another violet umbrella\n")
    for _ in range(4):  # from the third on one must wait
        assert isinstance(users.sign_in(), FailedLogin)
    code, printed, err = users.run("reset", users.email)
    assert (code, err) == (0, "")
    server = users.server
    enter = sessions.sign_in(server.db, server.settings, users.email, printed.strip(), "", "")
    opened = server.run(enter)
    assert isinstance(opened, LoginResult)
    done = users.run("reset", users.email.upper(), "--password-stdin", stdin=PASSWORD.encode())
    assert done == (0, f"The password of {users.email.upper()} is changed.\n", "")
    assert server.run(sessions.get_session(server.db, opened.token)) is None
    assert isinstance(users.sign_in(), LoginResult)


def test_a_reset_disables_two_factor_on_request(users: UsersCommand) -> None:
    ident = UUID(users.create("--password-stdin", stdin=PASSWORD.encode())[1].strip())
    server = users.server
    server.run(server.db.execute("update accounts set totp_secret = $2 where id = $1", ident, "A" * 32))
    assert users.run("reset", users.email)[0] == 0
    assert "two steps" in users.lines()[0]
    assert users.run("reset", users.email, "--disable-two-factor", "--password-stdin", stdin=PASSWORD.encode())[0] == 0
    assert "one step" in users.lines()[0]
    entered = users.sign_in()
    assert isinstance(entered, LoginResult)
    assert not entered.two_factor_pending


def test_an_impossible_reset_reports_the_reason_and_changes_nothing(users: UsersCommand) -> None:
    nobody = users.run("reset", users.email)
    assert nobody == (1, "", f"Error: There is nobody {users.email}. See `plankeeper accounts list`.\n")
    users.create("--password-stdin", stdin=PASSWORD.encode())
    for wrong in (b"short\n", b""):
        refused = users.run("reset", users.email, "--password-stdin", stdin=wrong)
        assert refused == (1, "", "Error: The password must be 12 to 128 characters long.\n")
    assert isinstance(users.sign_in(), LoginResult)


def test_an_unknown_plan_manager_or_account_is_reported(users: UsersCommand) -> None:
    nobody = "00000000-0000-0000-0000-000000000001"
    gone = users.run("remove", users.email)
    assert gone == (1, "", f"Error: There is nobody {users.email} with such a role. See `plankeeper accounts list`.\n")
    users.create("--password-stdin", stdin=PASSWORD.encode())
    assert users.run("remove", users.email, "--plan-manager", nobody)[0] == 1
    assert len(users.lines()) == 1
    users.plan_manager_id = UUID(nobody)
    users.email = f"other-{users.email}"
    assert users.create()[2].startswith(f"Error: There is no plan manager {nobody}.")
