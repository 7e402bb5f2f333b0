"""The provider of a plan manager: set up and removed by the operator."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime

from uuid_utils.compat import uuid7

from plankeeper.access.single_sign_on import store
from plankeeper.access.single_sign_on.client import ProviderDirectory, ProviderError, ProviderHttpClient, is_allowed_url
from plankeeper.access.single_sign_on.schemas import Provider, ProviderEvent
from plankeeper.core.context import WriteContext
from plankeeper.core.encryption.cipher import secret_cipher
from plankeeper.core.errors import ValidationError
from plankeeper.events.recorder import record_event

MAX_LENGTH = 1000  # of a client id and a secret
_DOMAIN = re.compile(r"(?=.{4,253}$)[a-z0-9][a-z0-9-]{0,62}(\.[a-z0-9-]{1,63})*\.[a-z][a-z0-9-]{0,61}[a-z]")


async def set_up(
    ctx: WriteContext, issuer: str, client_id: str, client_secret: str, domains: Sequence[str]
) -> Provider:
    """Set or replace the provider of the context's plan manager. Raises ValidationError.

    Sessions of a previous provider lose their access.
    """
    allowed_domains = validate(issuer, client_id, client_secret, domains)
    before = await store.get(ctx.tx, ctx.plan_manager_id)
    provider_id = uuid7()
    provider = Provider(
        plan_manager_id=ctx.plan_manager_id,
        id=provider_id,
        issuer=issuer,
        client_id=client_id,
        encrypted_client_secret=secret_cipher(ctx.settings).encrypt(client_secret, provider_id.bytes),
        allowed_domains=allowed_domains,
        created_at=datetime.now(UTC),
    )
    if not await store.upsert(ctx.tx, provider):
        raise ValidationError(domain="is used by the provider of another plan manager")
    if before:
        await record_event(ctx, "single_sign_on_provider.deleted", _event(before), None)
    await record_event(ctx, "single_sign_on_provider.created", None, _event(provider))
    return provider


async def remove(ctx: WriteContext) -> Provider | None:
    """Remove the provider of the context's plan manager and return it; None if there is none."""
    before = await store.delete(ctx.tx, ctx.plan_manager_id)
    if before:
        await record_event(ctx, "single_sign_on_provider.deleted", _event(before), None)
    return before


async def check_discovery(issuer: str) -> None:
    """Fetch the discovery document and the keys of an issuer. Raises ProviderError."""
    directory = ProviderDirectory(ProviderHttpClient())
    if not await directory.get_keys(await directory.get_metadata(issuer)):
        raise ProviderError("the provider has no key for signatures")


def _event(provider: Provider) -> ProviderEvent:
    return ProviderEvent(provider.id, provider.issuer, provider.client_id, provider.allowed_domains)


def validate(issuer: str, client_id: str, client_secret: str, domains: Sequence[str]) -> list[str]:
    """The allowed domains in lower case, each once. Raises ValidationError for an invalid provider."""
    allowed_domains = sorted({domain.strip().lower() for domain in domains})
    errors: dict[str, str] = {}
    if not is_allowed_url(issuer) or "?" in issuer:
        errors["issuer"] = "must be a URL that starts with https://, without a query and a fragment"
    for name, text in (("client_id", client_id), ("client_secret", client_secret)):
        if not text.isprintable() or not 0 < len(text) <= MAX_LENGTH:
            errors[name] = f"must be one line of 1 to {MAX_LENGTH} characters"
    if not allowed_domains or not all(_DOMAIN.fullmatch(domain) for domain in allowed_domains):
        errors["domain"] = "must be the part of an email after the @, such as example.com"
    if errors:
        raise ValidationError(**errors)
    return allowed_domains
