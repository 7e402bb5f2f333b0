"""Signs a person in at a provider: the authorization code flow with PKCE, state and nonce."""

import base64
import hashlib
import hmac
import time
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Literal, NamedTuple
from urllib.parse import quote_plus, urlencode
from uuid import UUID

from plankeeper.access.single_sign_on import store
from plankeeper.access.single_sign_on.client import ProviderDirectory, ProviderError, ProviderHttpClient
from plankeeper.access.single_sign_on.id_token import (
    ExpectedClaims,
    IdTokenError,
    UnknownKeyError,
    verify_id_token,
)
from plankeeper.access.single_sign_on.schemas import (
    Claims,
    Flow,
    Identity,
    NewFlow,
    Provider,
    ProviderMetadata,
    TokenResponse,
)
from plankeeper.access.tokens import hash_token, new_token
from plankeeper.core.encryption.cipher import secret_cipher
from plankeeper.core.formatting import single_line
from plankeeper.core.settings import Settings
from plankeeper.database.client import Database


def state_of(token: str) -> str:
    """The value of `state`, which the authorization response returns."""
    return _derive(token, b"state")


def nonce_of(token: str) -> str:
    """The value of `nonce`, which the ID token returns."""
    return _derive(token, b"nonce")


def code_verifier_of(token: str) -> str:
    """The secret of PKCE (RFC 7636), which only the token endpoint receives."""
    return _derive(token, b"code verifier")


def code_challenge_of(token: str) -> str:
    """The SHA-256 hash of the code verifier, for the authorization request."""
    return _encode(hashlib.sha256(code_verifier_of(token).encode()).digest())


def _derive(token: str, purpose: bytes) -> str:
    return _encode(hmac.digest(token.encode("utf-8", "replace"), purpose, "sha256"))


def _encode(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).decode().rstrip("=")


CALLBACK_PATH = "/console/single-sign-on/{plan_manager_id}/callback"
FLOW_LIFETIME = timedelta(minutes=10)
MAX_CALLS = 4  # of a provider, in progress in one worker: a slow provider doesn't use up all connections
MAX_CODE_LENGTH = 4096
SCOPE = "openid email profile"

FailureReason = Literal["expired", "rejected", "unavailable", "invalid", "email", "invitation"]


class SingleSignOnError(Exception):
    """A sign-in at a provider failed. The explanation is for the log, the reason selects the text of the page."""

    def __init__(self, reason: FailureReason, explanation: str = "") -> None:
        super().__init__(explanation or reason)
        self.reason: FailureReason = reason
        self.explanation = explanation


class AuthorizationRequest(NamedTuple):
    """The provider's URL for the browser, and the token of its cookie."""

    url: str
    token: str


class AuthorizationResponse(NamedTuple):
    """The parameters of the callback. Missing ones are empty."""

    state: str
    code: str
    error: str
    issuer: str


class ConfirmedIdentity(NamedTuple):
    """The result of a sign-in at a provider."""

    flow: Flow
    provider: Provider
    identity: Identity


class SingleSignOn:
    """The sign-ins at providers, with the cached documents of one worker."""

    def __init__(self, http: ProviderHttpClient | None = None) -> None:
        self._http = http or ProviderHttpClient()
        self._directory = ProviderDirectory(self._http)
        self._calls = Counter[str]()  # in progress, by issuer

    async def start(
        self, db: Database, settings: Settings, provider: Provider, next_path: str = "", invitation_token: str = ""
    ) -> AuthorizationRequest:
        """Begin a sign-in at a provider. Raises SingleSignOnError."""
        with self._call(provider.issuer):
            metadata = await self._directory.get_metadata(provider.issuer)
        now, token = datetime.now(UTC), new_token()
        invitation_hash = hash_token(invitation_token) if invitation_token else None
        flow = NewFlow(hash_token(token), provider.id, next_path, invitation_hash, now + FLOW_LIFETIME)
        async with db.transaction() as tx:
            await store.delete_old_flows(tx, now)
            await store.insert_flow(tx, flow)
        parameters = {
            "response_type": "code",
            "client_id": provider.client_id,
            "redirect_uri": redirect_uri(settings, provider.plan_manager_id),
            "scope": SCOPE,
            "state": state_of(token),
            "nonce": nonce_of(token),
            "code_challenge": code_challenge_of(token),
            "code_challenge_method": "S256",
        }
        separator = "&" if "?" in metadata.authorization_endpoint else "?"
        return AuthorizationRequest(metadata.authorization_endpoint + separator + urlencode(parameters), token)

    async def finish(
        self, db: Database, settings: Settings, plan_manager_id: UUID, token: str, response: AuthorizationResponse
    ) -> ConfirmedIdentity:
        """Verify the response that came to a plan manager's redirect address. It is accepted once.

        Raises SingleSignOnError.
        """
        if not token or not hmac.compare_digest(response.state.encode(), state_of(token).encode()):
            raise SingleSignOnError("expired", "the state is not the browser's")
        flow = await store.use_flow(db, hash_token(token), datetime.now(UTC))
        provider = await store.get_by_id(db, flow.provider_id) if flow else None
        if flow is None or provider is None:
            raise SingleSignOnError("expired", "the sign-in has expired, or was completed before")
        if provider.plan_manager_id != plan_manager_id:
            # The code was issued by another provider than this one, which must not receive it.
            raise SingleSignOnError("invalid", "the response came to the redirect address of another plan manager")
        with self._call(provider.issuer):
            metadata = await self._directory.get_metadata(provider.issuer)
            _verify_response(response, metadata)
            secret = secret_cipher(settings).decrypt(provider.encrypted_client_secret, provider.id.bytes)
            claims = await self._redeem(settings, provider, metadata, secret, token, response.code)
        return ConfirmedIdentity(flow, provider, _build_identity(provider, claims))

    @contextmanager
    def _call(self, issuer: str) -> Generator[None]:
        """Counts the calls of a provider, and turns their errors into a SingleSignOnError."""
        if self._calls[issuer] >= MAX_CALLS:
            raise SingleSignOnError("unavailable", "too many calls of the provider are in progress")
        self._calls[issuer] += 1
        try:
            yield
        except ProviderError as error:
            raise SingleSignOnError("unavailable", str(error)) from None
        except IdTokenError as error:
            raise SingleSignOnError("invalid", f"the ID token is invalid: {error}") from None
        finally:
            self._calls -= Counter([issuer])  # keeps no zeros

    async def _redeem(
        self, settings: Settings, provider: Provider, metadata: ProviderMetadata, secret: str, token: str, code: str
    ) -> Claims:
        """The claims about the person, for an authorization code. Raises ProviderError and IdTokenError."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri(settings, provider.plan_manager_id),
            "code_verifier": code_verifier_of(token),
        }
        headers: dict[str, str] = {}
        if "client_secret_basic" in metadata.token_endpoint_auth_methods_supported:
            headers["authorization"] = _basic_authorization(provider.client_id, secret)
        else:
            form |= {"client_id": provider.client_id, "client_secret": secret}
        tokens = await self._http.post_form(TokenResponse, metadata.token_endpoint, form, headers)
        expected = ExpectedClaims(provider.issuer, provider.client_id, nonce_of(token))
        claims = await self._verify(tokens.id_token, metadata, expected)
        if claims.email is not None or not metadata.userinfo_endpoint or not tokens.access_token:
            return claims
        bearer = {"authorization": f"Bearer {tokens.access_token}"}
        userinfo = await self._http.get(Claims, metadata.userinfo_endpoint, bearer)
        if userinfo.sub != claims.sub:
            raise ProviderError("the userinfo endpoint describes another person than the ID token")
        return userinfo

    async def _verify(self, id_token: str, metadata: ProviderMetadata, expected: ExpectedClaims) -> Claims:
        keys = await self._directory.get_keys(metadata)
        try:
            return verify_id_token(id_token, keys, expected, int(time.time()))
        except UnknownKeyError:
            keys = await self._directory.get_keys(metadata, refresh=True)
            return verify_id_token(id_token, keys, expected, int(time.time()))


def redirect_uri(settings: Settings, plan_manager_id: UUID) -> str:
    """The address that the provider of a plan manager sends browsers back to.

    It begins with the public URL, never with a request's host. No other provider has it registered, so the address
    tells which provider a response comes from, even if the response names no issuer (RFC 9700, section 4.4.2).
    """
    if settings.public_url is None:
        raise SingleSignOnError("unavailable", "single sign-on requires PLANKEEPER_PUBLIC_URL")
    return settings.public_url + CALLBACK_PATH.format(plan_manager_id=plan_manager_id)


def _verify_response(response: AuthorizationResponse, metadata: ProviderMetadata) -> None:
    """Raises SingleSignOnError for a response with an error, or from another provider (RFC 9207)."""
    if response.issuer != metadata.issuer and (
        response.issuer or metadata.authorization_response_iss_parameter_supported
    ):
        raise SingleSignOnError("invalid", "the response comes from another issuer")
    if response.error or not 0 < len(response.code) <= MAX_CODE_LENGTH:
        raise SingleSignOnError("rejected", "the provider didn't sign the person in")


def _basic_authorization(client_id: str, secret: str) -> str:
    """The `Authorization` of a client: both values are form-encoded first (RFC 6749, section 2.3.1)."""
    credentials = f"{quote_plus(client_id)}:{quote_plus(secret)}"
    return f"Basic {base64.b64encode(credentials.encode()).decode()}"


def _build_identity(provider: Provider, claims: Claims) -> Identity:
    """The identity, if its email is verified and in one of the provider's domains. Raises SingleSignOnError."""
    email = claims.email
    if not isinstance(email, str) or claims.email_verified is not True:
        raise SingleSignOnError("email", "the provider hasn't verified the email")
    is_address = email.isascii() and email.count("@") == 1 and single_line(email, 254) == email
    if not is_address or email.rpartition("@")[2].lower() not in provider.allowed_domains:
        raise SingleSignOnError("email", "the email is in none of the allowed domains")
    name = single_line(claims.name.strip(), 255) if isinstance(claims.name, str) else ""
    return Identity(provider.issuer, claims.sub, email, name or None)
