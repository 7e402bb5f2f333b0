"""Invalid responses of a provider, or of an attacker who imitates one, are rejected."""

import hmac
import time
from collections.abc import Callable
from operator import itemgetter
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import UUID, uuid4

import httpx
import pytest
from joserfc.jwk import ECKey, OKPKey, RSAKey

from plankeeper.access.single_sign_on import client
from support.cluster import SharedCluster
from support.console import Account
from support.openid_provider import (
    CLIENT_ID,
    CLIENT_SECRET,
    KEY,
    Claims,
    OpenIdProvider,
    encode_part,
    join_token,
    sign_token,
)
from support.quotas import hold_minute
from support.server import RunningServer
from support.single_sign_on import LINK, START, PublicBrowser, link
from support.sweeps import sweep

HOME = "/console"
OTHER_KEY = RSAKey.generate_key(2048, {"kid": "first", "use": "sig"})
NOW = int(time.time())


def failure(reason: str) -> str:
    return f"{START}/failed?reason={reason}"


INVALID_CLAIMS: dict[str, Claims] = {
    "another audience": {"aud": "another client"},
    "no audience": {"aud": None},
    "another audience first": {"aud": ["another client", CLIENT_ID]},
    "another authorized party": {"aud": [CLIENT_ID, "another client"], "azp": "another client"},
    "another authorized party alone": {"azp": "another client"},
    "expired": {"exp": NOW - 120},
    "no expiry": {"exp": None},
    "an expiry that is no number": {"exp": str(NOW + 300)},
    "issued in the future": {"iat": NOW + 86_400},
    "issued long ago": {"iat": NOW - 3600},
    "no time of issue": {"iat": None},
    "not valid yet": {"nbf": NOW + 86_400},
    "another issuer": {"iss": "https://login.example.com"},
    "no issuer": {"iss": None},
    "another nonce": {"nonce": "another"},
    "no nonce": {"nonce": None},
    "a nonce that is no text": {"nonce": 1},
    "no subject": {"sub": None},
    "an empty subject": {"sub": ""},
    "a long subject": {"sub": "x" * 256},
    "a subject that is no text": {"sub": 1},
}


def with_hs256(key: bytes) -> Callable[[Claims], str]:
    """A token with a symmetric signature. joserfc itself takes no public key for it."""

    def build(claims: Claims) -> str:
        signed = join_token({"alg": "HS256", "kid": "first"}, claims).rpartition(".")[0]
        return f"{signed}.{encode_part(hmac.digest(key, signed.encode(), 'sha256'))}"

    return build


def without_signature(claims: Claims) -> str:
    return sign_token(claims).rpartition(".")[0] + "."


def with_changed_claims(claims: Claims) -> str:
    header, _, signature = sign_token(claims).split(".")
    return f"{header}.{join_token({}, claims | {'sub': 'administrator'}).split('.')[1]}.{signature}"


INVALID_TOKENS: dict[str, Callable[[Claims], str]] = {
    "unsigned": lambda claims: join_token({"alg": "none"}, claims),
    "unsigned, in capitals": lambda claims: join_token({"alg": "None", "kid": "first"}, claims),
    "without its signature": without_signature,
    "with changed claims": with_changed_claims,
    "signed by another key": lambda claims: sign_token(claims, OTHER_KEY),
    "signed by a key in its header": lambda claims: sign_token(
        claims, OTHER_KEY, jwk=OTHER_KEY.as_dict(private=False)
    ),
    "signed by an unknown key": lambda claims: sign_token(claims, KEY, kid="unknown"),
    "signed with the public key as a secret": with_hs256(KEY.as_pem(private=False)),
    "signed with the client secret": with_hs256(CLIENT_SECRET.encode()),
    "with an unknown critical header": lambda claims: join_token(
        {"alg": "RS256", "kid": "first", "crit": ["b64"], "b64": False}, claims
    ),
    "no token": lambda _claims: "token",
    "too long": lambda claims: sign_token(claims | {"padding": "x" * 20_000}),
}  # fmt: skip


@sweep("name, claims", INVALID_CLAIMS.items(), itemgetter(0))
def test_a_token_with_other_claims_is_rejected(
    provider: OpenIdProvider, browser: PublicBrowser, plan_manager_id: UUID, domain: str, name: str, claims: Claims
) -> None:
    assert browser.sign_in_at(provider, plan_manager_id, f"robin@{domain}", **claims) == failure("invalid")
    assert browser.get(LINK).headers["location"] == failure("expired")


@sweep("name, build_token", INVALID_TOKENS.items(), itemgetter(0))
def test_a_token_that_the_provider_did_not_sign_is_rejected(
    provider: OpenIdProvider, browser: PublicBrowser, plan_manager_id: UUID, domain: str, name: str,
    build_token: Callable[[Claims], str],
) -> None:  # fmt: skip
    provider.build_token = build_token
    assert browser.sign_in_at(provider, plan_manager_id, f"robin@{domain}") == failure("invalid")
    assert browser.get(LINK).headers["location"] == failure("expired")


@pytest.mark.parametrize("alg, key", [
    ("RS256", KEY), ("PS256", OTHER_KEY), ("ES256", ECKey.generate_key("P-256", {"kid": "curve"})),
    ("EdDSA", OKPKey.generate_key("Ed25519", {"kid": "edwards"})),
])  # fmt: skip
def test_tokens_with_each_algorithm_are_accepted(
    provider: OpenIdProvider, browser: PublicBrowser, plan_manager_id: UUID, domain: str, alg: str, key: Any
) -> None:
    provider.keys = [key]
    provider.build_token = lambda claims: sign_token(claims, key, alg)
    assert browser.sign_in_at(provider, plan_manager_id, f"robin@{domain}") == LINK


@sweep("claims", [
    {"email_verified": False}, {"email_verified": None}, {"email_verified": "true"}, {"email_verified": 1},
    {"email": "robin@example.com"}, {"email": 1}, {"email": "robin"}, {"email": "a@evil.example@{domain}"},
    {"email": "robin@{domain}.evil.example"}, {"email": "robin@evil.example.{domain}"}, {"email": "robín@{domain}"},
    {"email": "robin\n@{domain}"},
], str)  # fmt: skip
def test_an_email_must_be_verified_and_in_the_domain(
    provider: OpenIdProvider, browser: PublicBrowser, plan_manager_id: UUID, domain: str, claims: Claims
) -> None:
    changed = {name: each.format(domain=domain) if isinstance(each, str) else each for name, each in claims.items()}
    sent = {"sub": "a person", "email": f"robin@{domain}"} | changed
    assert browser.come_back(provider.authorize(browser.start(plan_manager_id), **sent)) == failure("email")


def test_a_linked_person_must_keep_an_email_in_the_domain(
    provider: OpenIdProvider, new_browser: Callable[..., PublicBrowser], plan_manager_id: UUID, person: Account
) -> None:
    link(new_browser(), provider, plan_manager_id, person)
    subject = f"person-{person.email}"
    location = new_browser().sign_in_at(provider, plan_manager_id, "robin@example.com", sub=subject)
    assert location == failure("email")


def test_a_response_is_accepted_once_and_only_from_its_browser(
    provider: OpenIdProvider, new_browser: Callable[..., PublicBrowser], plan_manager_id: UUID, person: Account
) -> None:
    link(new_browser(), provider, plan_manager_id, person)
    browser, victim = new_browser(), new_browser()
    address = provider.authorize(browser.start(plan_manager_id), person.email)
    cookie = browser.http.cookies["__Host-plankeeper-sso"]
    assert victim.come_back(address) == failure("expired")  # without a cookie
    victim.start(plan_manager_id)
    assert victim.come_back(address) == failure("expired")  # with the cookie of another sign-in
    assert browser.come_back(address) == HOME
    assert "__Host-plankeeper-sso" not in browser.http.cookies
    replaying = new_browser()
    replaying.http.cookies.set("__Host-plankeeper-sso", cookie, domain="plans.example.com")
    assert replaying.come_back(address) == failure("expired")
    assert victim.get(HOME).headers["location"].startswith("/console/sign-in")


def test_a_code_is_of_no_use_in_another_sign_in(
    provider: OpenIdProvider, new_browser: Callable[..., PublicBrowser], plan_manager_id: UUID, person: Account
) -> None:
    """The attacker puts the victim's code into their own response: the code verifier is the victim's."""
    victim, attacker = new_browser(), new_browser()
    stolen = parse_qs(urlsplit(provider.authorize(victim.start(plan_manager_id), person.email)).query)["code"][0]
    own = httpx.URL(provider.authorize(attacker.start(plan_manager_id), person.email))
    assert attacker.come_back(str(own.copy_set_param("code", stolen))) == failure("unavailable")


def test_a_token_of_an_earlier_sign_in_is_rejected(
    provider: OpenIdProvider, new_browser: Callable[..., PublicBrowser], plan_manager_id: UUID, person: Account
) -> None:
    tokens: list[str] = []
    provider.build_token = lambda claims: tokens.append(sign_token(claims)) or tokens[0]
    assert new_browser().sign_in_at(provider, plan_manager_id, person.email) == LINK
    assert new_browser().sign_in_at(provider, plan_manager_id, person.email) == failure("invalid")


def test_a_response_expires(
    server: RunningServer, provider: OpenIdProvider, browser: PublicBrowser, plan_manager_id: UUID, person: Account
) -> None:
    # One insert deletes ten expired rows at most, and rows of other tests would be among them.
    server.run(server.db.execute("delete from pending_identities"))
    server.run(server.db.execute("delete from single_sign_on_flows"))
    address = provider.authorize(browser.start(plan_manager_id), person.email)
    statement = "update single_sign_on_flows set expires_at = expires_at - interval '10 minutes'"
    server.run(server.db.execute(statement))
    assert browser.come_back(address) == failure("expired")
    assert browser.sign_in_at(provider, plan_manager_id, person.email) == LINK
    server.run(server.db.execute("update pending_identities set expires_at = expires_at - interval '10 minutes'"))
    assert browser.get(LINK).headers["location"] == failure("expired")
    # Expired rows are deleted when the next ones are inserted.
    assert browser.sign_in_at(provider, plan_manager_id, person.email) == LINK
    for table in ("single_sign_on_flows", "pending_identities"):
        statement: Any = f"select count(*) from {table} where expires_at < now()"
        assert server.run(server.db.one(int, statement)) == 0


def test_the_response_of_another_provider_is_rejected(
    provider: OpenIdProvider, new_browser: Callable[..., PublicBrowser], plan_manager_id: UUID, person: Account
) -> None:
    for changed in ({"iss": "https://login.example.com"}, {"iss": ""}):
        browser = new_browser()
        address = httpx.URL(provider.authorize(browser.start(plan_manager_id), person.email))
        assert browser.come_back(str(address.copy_merge_params(changed))) == failure("invalid")
    assert "/token" not in provider.requests


@pytest.mark.parametrize("parameters", [{"error": "access_denied"}, {"code": ""}, {"code": "x" * 5000}])
def test_a_response_without_a_code_is_a_failure(
    provider: OpenIdProvider, browser: PublicBrowser, plan_manager_id: UUID, person: Account, parameters: Any
) -> None:
    address = httpx.URL(provider.authorize(browser.start(plan_manager_id), person.email))
    location = browser.come_back(str(address.copy_merge_params(parameters)))
    assert location == failure("unavailable" if len(parameters.get("code", "")) > 4096 else "rejected")
    assert "didn’t sign you in" in browser.get(failure("rejected")).text


INVALID_METADATA: dict[str, Callable[[Claims], Claims]] = {
    "another issuer": lambda found: found | {"issuer": "https://login.example.com"},
    "no token endpoint": lambda found: {name: each for name, each in found.items() if name != "token_endpoint"},
    "an endpoint without TLS": lambda found: found | {"token_endpoint": "http://login.example.com/token"},
    "keys on the disk": lambda found: found | {"jwks_uri": "file:///etc/passwd"},
    "a script": lambda found: found | {"authorization_endpoint": "javascript:alert(1)"},
    "a list": lambda _found: [],  # type: ignore[return-value, dict-item]
    "too long": lambda found: found | {"padding": "x" * 300_000},
}


@pytest.mark.parametrize("change", INVALID_METADATA.values(), ids=INVALID_METADATA)
def test_an_invalid_discovery_document_is_rejected(
    provider: OpenIdProvider, browser: PublicBrowser, plan_manager_id: UUID, domain: str,
    change: Callable[[Claims], Claims],
) -> None:  # fmt: skip
    assert domain
    provider.change_metadata = change
    for _ in range(3):  # it is fetched once
        assert browser.get(f"{START}/{plan_manager_id}/start").headers["location"] == failure("unavailable")
    assert provider.requests == ["/.well-known/openid-configuration"]


@pytest.mark.parametrize("path", ["/token", "/jwks", "/.well-known/openid-configuration"])
def test_a_failing_provider_is_a_failure(
    provider: OpenIdProvider, browser: PublicBrowser, plan_manager_id: UUID, person: Account, path: str
) -> None:
    provider.failing = path
    started = browser.get(f"{START}/{plan_manager_id}/start").headers["location"]
    if path in ("/token", "/jwks"):
        started = browser.come_back(provider.authorize(started, person.email))
    assert started == failure("unavailable")


def test_new_keys_are_fetched_but_not_for_every_unknown_key(
    provider: OpenIdProvider, new_browser: Callable[..., PublicBrowser], monkeypatch: pytest.MonkeyPatch,
    plan_manager_id: UUID, person: Account,
) -> None:  # fmt: skip
    second = RSAKey.generate_key(2048, {"kid": "second", "use": "sig"})
    assert new_browser().sign_in_at(provider, plan_manager_id, person.email) == LINK
    provider.keys, provider.build_token = [KEY, second], lambda claims: sign_token(claims, second)
    for _ in range(2):
        assert new_browser().sign_in_at(provider, plan_manager_id, person.email) == failure("invalid")
    assert provider.requests.count("/jwks") == 1
    monkeypatch.setattr(client, "MIN_REFRESH_INTERVAL", 0.0)
    assert new_browser().sign_in_at(provider, plan_manager_id, person.email) == LINK
    assert provider.requests.count("/jwks") == 2


def test_claims_can_come_from_the_userinfo_endpoint(
    provider: OpenIdProvider, new_browser: Callable[..., PublicBrowser], plan_manager_id: UUID, person: Account
) -> None:
    provider.userinfo = {"sub": "a person", "email": person.email, "email_verified": True}
    claims = {"sub": "a person", "email_verified": None, "name": None}
    for email, expected in ((None, LINK), (person.email, failure("email"))):  # the token's own email isn't verified
        browser = new_browser()
        address = provider.authorize(browser.start(plan_manager_id), email, **claims)
        assert browser.come_back(address) == expected
    provider.userinfo |= {"sub": "another person"}
    browser = new_browser()
    address = provider.authorize(browser.start(plan_manager_id), None, **claims)
    assert browser.come_back(address) == failure("unavailable")


def test_a_client_secret_can_be_sent_in_the_form(
    provider: OpenIdProvider, browser: PublicBrowser, plan_manager_id: UUID, person: Account
) -> None:
    methods = {"token_endpoint_auth_methods_supported": ["client_secret_post"]}
    provider.change_metadata = lambda found: found | methods
    assert browser.sign_in_at(provider, plan_manager_id, person.email) == LINK


def test_the_request_has_pkce_state_nonce_and_the_public_redirect_address(
    browser: PublicBrowser, server: RunningServer, plan_manager_id: UUID, domain: str
) -> None:
    assert domain
    queries = [parse_qs(urlsplit(browser.start(plan_manager_id)).query) for _ in range(2)]
    fixed = {"response_type", "client_id", "redirect_uri", "scope", "code_challenge_method"}
    assert {name: queries[0][name] for name in fixed} == {
        "response_type": ["code"], "client_id": [CLIENT_ID], "scope": ["openid email profile"],
        "redirect_uri": [f"https://plans.example.com/console/single-sign-on/{plan_manager_id}/callback"],
        "code_challenge_method": ["S256"],
    }  # fmt: skip
    for name in ("state", "nonce", "code_challenge"):
        assert len(queries[0][name][0]) == 43
        assert queries[0][name] != queries[1][name]
    [cookie] = [each for each in browser.http.cookies.jar if each.name == "__Host-plankeeper-sso"]
    attributes = (cookie.secure, cookie.path, cookie.has_nonstandard_attr("HttpOnly"))
    assert attributes == (True, "/", True)
    assert cookie.value not in {queries[1][name][0] for name in ("state", "nonce", "code_challenge")}


def test_an_unknown_plan_manager_has_no_provider(browser: PublicBrowser) -> None:
    assert browser.get(f"{START}/{uuid4()}/start").headers["location"] == failure("unavailable")


def test_without_a_public_url_nothing_is_made_from_the_host(
    cluster: SharedCluster, server: RunningServer, plan_manager_id: UUID, domain: str
) -> None:
    assert domain
    plain = RunningServer(cluster.dsn, secret_key_file=server.settings.secret_key_file).start()
    try:
        with httpx.Client(base_url=plain.url, headers={"Host": "evil.example"}) as http:
            response = http.get(f"{START}/{plan_manager_id}/start")
            assert response.headers["location"] == failure("unavailable")
            assert "single sign-on" not in http.get("/console/sign-in").text
            assert http.get(START).headers["location"] == "/console/sign-in"
    finally:
        plain.stop()


def test_attempts_are_counted_by_address(
    cluster: SharedCluster, server: RunningServer, provider: OpenIdProvider, plan_manager_id: UUID, domain: str
) -> None:
    assert domain
    limited = RunningServer(
        cluster.dsn, public_url=server.settings.public_url, secret_key_file=server.settings.secret_key_file,
        auth_failure_rate_limit=3,
    ).start()  # fmt: skip
    try:
        browser = PublicBrowser(limited)
        path = f"{START}/{plan_manager_id}/start"
        for subject in ("start", "guess"):
            limited.run(hold_minute(limited.db, f"{subject}:127.0.0.1"))  # other tests count by this address, too
        assert [browser.get(path).status_code for _ in range(8)] == [303] * 3 + [429] * 5
        # A page of another site can make browsers begin, which takes nobody's attempts to sign in.
        assert [browser.get(f"{START}/{plan_manager_id}/callback").status_code for _ in range(3)] == [303] * 3
        assert [browser.get(f"{START}/{plan_manager_id}/callback").status_code for _ in range(8)].count(429) >= 2
        browser.http.close()
    finally:
        limited.stop()
    assert provider.requests == ["/.well-known/openid-configuration"]


@pytest.mark.parametrize("mode, status", [("no-cors", 403), ("cors", 403), ("navigate", 303)])
def test_another_site_begins_a_sign_in_only_by_a_link(
    server: RunningServer, browser: PublicBrowser, plan_manager_id: UUID, domain: str, mode: str, status: int
) -> None:
    assert domain
    before = server.run(server.db.one(int, "select count(*) from single_sign_on_flows"))
    headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": mode}
    response = browser.http.get(f"{START}/{plan_manager_id}/start", headers=headers)
    assert response.status_code == status
    count = "select count(*) from single_sign_on_flows"
    assert server.run(server.db.one(int, count)) == before + (status == 303)
    assert any("plankeeper-sso" in each for each in response.headers.get_list("set-cookie")) == (status == 303)
