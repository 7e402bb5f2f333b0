"""`plankeeper sso`: a provider is set up, listed and removed; recovery by the operator; and errors."""

from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from plankeeper.access.single_sign_on import store
from plankeeper.core.encryption.cipher import create_key_file
from support.accounts import recorded_account_events
from support.cluster import SharedCluster
from support.console import Account
from support.openid_provider import Claims, OpenIdProvider
from support.program import Done, run_plankeeper
from support.server import RunningServer

PUBLIC_URL = "https://plans.example.com"
SECRET = b"a secret of the test\n"


@pytest.fixture
def provider() -> Iterator[OpenIdProvider]:
    with OpenIdProvider() as running:
        yield running


@pytest.fixture
def settings(cluster: SharedCluster, tmp_path: Path) -> dict[str, str]:
    create_key_file(tmp_path / "secret.keys")
    return {
        "PLANKEEPER_DATABASE_URL": cluster.dsn,
        "PLANKEEPER_PUBLIC_URL": PUBLIC_URL,
        "PLANKEEPER_SECRET_KEY_FILE": str(tmp_path / "secret.keys"),
    }


def add(settings: dict[str, str], plan_manager_id: UUID, issuer: str, domain: str, *more: str) -> Done:
    options = ["--plan-manager", str(plan_manager_id), "--issuer", issuer, "--client-id", "console"]
    return run_plankeeper("sso", "add", *options, "--domain", domain, *more, stdin=SECRET, **settings)


def test_a_provider_is_added_listed_and_removed(
    server: RunningServer, provider: OpenIdProvider, settings: dict[str, str], plan_manager_id: UUID
) -> None:
    domain = f"{plan_manager_id}.example"
    added = add(settings, plan_manager_id, provider.issuer, domain.upper(), "--domain", f"b.{domain}")
    assert added == Done(0, f"{PUBLIC_URL}/console/single-sign-on/{plan_manager_id}/callback\n", "")
    assert provider.requests == ["/.well-known/openid-configuration", "/jwks"]
    saved = server.run(store.get(server.db, plan_manager_id))
    assert saved is not None
    assert SECRET.decode().strip() not in saved.encrypted_client_secret
    line = f"{plan_manager_id}  optional  {provider.issuer}  console  {domain},b.{domain}"
    assert line in run_plankeeper("sso", "list", **settings).stdout.splitlines()
    assert add(settings, plan_manager_id, provider.issuer, domain).returncode == 0
    replaced = server.run(store.get(server.db, plan_manager_id))
    assert replaced is not None
    assert (replaced.id != saved.id, replaced.allowed_domains) == (True, [domain])
    named = ("--plan-manager", str(plan_manager_id))
    assert run_plankeeper("sso", "remove", *named, **settings).stdout == f"Removed: {provider.issuer}\n"
    assert server.run(store.get(server.db, plan_manager_id)) is None
    again = run_plankeeper("sso", "remove", *named, **settings)
    assert (again.returncode, "has no provider. See `plankeeper sso list`." in again.stderr) == (1, True)
    statement = "select type from events where plan_manager_id = $1 order by created_at, id"
    assert server.run(server.db.rows(str, statement, plan_manager_id)) == [
        f"single_sign_on_provider.{verb}" for verb in ("created", "deleted", "created", "deleted")
    ]
    data = "select coalesce(data, previous)::text from events where plan_manager_id = $1"
    assert not [each for each in server.run(server.db.rows(str, data, plan_manager_id)) if "secret" in each]


def test_the_check_of_a_provider_locks_no_table(
    server: RunningServer, provider: OpenIdProvider, settings: dict[str, str], plan_manager_id: UUID
) -> None:
    # A transaction that waits for its client: the command's, and not a vacuum or a statement of the server. Tables of
    # other tests' databases have the same id, because all are copies of one.
    statement = """
        select count(*) from pg_locks join pg_stat_activity using (pid)
        where relation = 'single_sign_on_providers'::regclass and granted and state = 'idle in transaction'
            and datname = current_database()
    """
    locks: list[int] = []

    def change(metadata: Claims) -> Claims:
        locks.append(server.run(server.db.one(int, statement)))
        return metadata

    provider.change_metadata = change
    assert add(settings, plan_manager_id, provider.issuer, f"{plan_manager_id}.example").returncode == 0
    assert locks == [0]


def test_single_sign_on_becomes_optional_again(
    server: RunningServer, settings: dict[str, str], plan_manager_id: UUID
) -> None:
    statement = "update plan_managers set requires_single_sign_on = true where id = $1"
    add(settings, plan_manager_id, "https://login.example.com", f"{plan_manager_id}.example", "--skip-check")
    for command in ("optional", "remove"):
        server.run(server.db.execute(statement, plan_manager_id))
        assert f"{plan_manager_id}  required  " in run_plankeeper("sso", "list", **settings).stdout
        done = run_plankeeper("sso", command, "--plan-manager", str(plan_manager_id), **settings)
        assert done.returncode == 0
        required = "select requires_single_sign_on from plan_managers where id = $1"
        assert server.run(server.db.one(bool, required, plan_manager_id)) is False


def test_an_account_is_unlinked(
    server: RunningServer, settings: dict[str, str], plan_manager_id: UUID, new_account: Callable[..., Account]
) -> None:
    person = new_account("viewer")
    statement = "insert into account_identities (issuer, subject, account_id, created_at) values ($1, $1, $2, now())"
    server.run(server.db.execute(statement, person.email, person.account_id))
    for count in (1, 0):
        done = run_plankeeper("sso", "unlink", person.email, **settings)
        assert done == Done(0, f"Unlinked identities: {count}\n", "")
    events = [each.type for each in recorded_account_events(server, plan_manager_id)]
    assert events.count("account.single_sign_on_unlinked") == 1
    unknown = run_plankeeper("sso", "unlink", "nobody@example.com", **settings)
    assert (unknown.returncode, "no account with the email nobody@example.com" in unknown.stderr) == (1, True)


@pytest.mark.parametrize(
    "issuer, domain, message",
    [
        ("http://login.example.com", "example.com", "--issuer must be a URL that starts with https://"),
        ("https://login.example.com?x=1", "example.com", "--issuer must be a URL that starts with https://"),
        ("https://login.example.com", "robin@example.com", "--domain must be the part of an email after the @"),
        ("https://login.example.com", "localhost", "--domain must be the part of an email after the @"),
        ("http://127.0.0.1:1", "example.com", "Nothing was changed: the connection to the provider failed"),
    ],
)
def test_an_invalid_provider_is_refused(
    server: RunningServer, settings: dict[str, str], plan_manager_id: UUID, issuer: str, domain: str, message: str
) -> None:
    done = add(settings, plan_manager_id, issuer, domain)
    assert (done.returncode, done.stdout, message in done.stderr) == (1, "", True), done.stderr
    assert server.run(store.get(server.db, plan_manager_id)) is None


def test_a_domain_leads_to_one_provider(
    settings: dict[str, str], plan_manager_id: UUID, new_plan_manager: Callable[[], UUID]
) -> None:
    domain = f"{plan_manager_id}.example"
    assert add(settings, plan_manager_id, "https://login.example.com", domain, "--skip-check").returncode == 0
    second = add(settings, new_plan_manager(), "https://login.example.com", domain, "--skip-check")
    assert (second.returncode, "--domain is used by the provider of another plan manager." in second.stderr) == (
        1,
        True,
    )


def test_what_is_missing_is_named(settings: dict[str, str], plan_manager_id: UUID) -> None:
    def reason(plan_manager: UUID = plan_manager_id, **changes: str) -> str:
        done = add(settings | changes, plan_manager, "https://login.example.com", "example.com", "--skip-check")
        assert (done.returncode, done.stdout) == (1, "")
        return done.stderr

    assert "requires PLANKEEPER_PUBLIC_URL" in reason(PLANKEEPER_PUBLIC_URL="")
    assert "PLANKEEPER_SECRET_KEY_FILE" in reason(PLANKEEPER_SECRET_KEY_FILE="")
    assert "There is no plan manager" in reason(uuid4())


def test_serve_requires_a_public_url_once_a_provider_is_set_up(settings: dict[str, str], plan_manager_id: UUID) -> None:
    add(settings, plan_manager_id, "https://login.example.com", f"{plan_manager_id}.example", "--skip-check")
    done = run_plankeeper("serve", "--port", "0", **settings | {"PLANKEEPER_PUBLIC_URL": ""})
    assert (done.returncode, done.stdout) == (1, "")
    assert "Single sign-on requires PLANKEEPER_PUBLIC_URL, the address at which browsers" in done.stderr
