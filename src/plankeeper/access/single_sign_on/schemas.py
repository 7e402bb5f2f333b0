"""Providers, sign-ins in progress, and the identities that providers confirm: rows, documents and results."""

from datetime import datetime
from typing import Any
from uuid import UUID

from msgspec import Struct

from plankeeper.core.fields import AwareDatetime


class Provider(Struct, kw_only=True):
    """The OpenID Connect provider of a plan manager."""

    plan_manager_id: UUID
    id: UUID
    issuer: str
    client_id: str
    encrypted_client_secret: str
    allowed_domains: list[str]
    created_at: AwareDatetime


class ProviderEvent(Struct):
    """The data of an event about a provider, without the client secret."""

    id: UUID
    issuer: str
    client_id: str
    allowed_domains: list[str]


class Flow(Struct):
    """A sign-in in progress, from the authorization request to the callback."""

    provider_id: UUID
    next_path: str
    invitation_token_hash: bytes | None


class NewFlow(Struct):
    """A flow to insert."""

    token_hash: bytes
    provider_id: UUID
    next_path: str
    invitation_token_hash: bytes | None
    expires_at: datetime


class Identity(Struct, frozen=True):
    """A person, as a provider confirms them. The subject is the provider's permanent id of the person."""

    issuer: str
    subject: str
    email: str
    name: str | None = None


class PendingIdentity(Struct, kw_only=True):
    """An identity that waits for the password of the account that it will belong to."""

    token_hash: bytes
    provider_id: UUID
    issuer: str
    subject: str
    email: str
    next_path: str
    invitation_token_hash: bytes | None  # the invitation that the sign-in began with
    expires_at: datetime


class ProviderMetadata(Struct, frozen=True):
    """The used fields of a provider's discovery document."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str | None = None
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)
    authorization_response_iss_parameter_supported: bool = False


class KeySetDocument(Struct, frozen=True):
    """The keys of a provider, as JSON Web Keys."""

    keys: list[dict[str, Any]]


class TokenResponse(Struct, frozen=True):
    """The used fields of the response of the token endpoint."""

    id_token: str
    access_token: str = ""


class Claims(Struct, frozen=True):
    """The used claims of an ID token, and of the response of the userinfo endpoint."""

    sub: str
    email: Any = None
    email_verified: Any = None
    name: Any = None
