"""The discovery documents and the keys of providers, which each worker caches."""

import asyncio
import time
from dataclasses import dataclass, field

from joserfc.jwk import KeySet

from plankeeper.single_sign_on.client import ProviderError, ProviderHttpClient, is_allowed_endpoint
from plankeeper.single_sign_on.id_token import parse_keys
from plankeeper.single_sign_on.schemas import KeySetDocument, ProviderMetadata

LIFETIME = 3600.0  # seconds that documents and keys are cached
MIN_REFRESH_INTERVAL = 60.0  # seconds between two requests for keys because of unknown key ids
FAILURE_LIFETIME = 5.0  # seconds that a failed request for a discovery document is not repeated
DISCOVERY_PATH = "/.well-known/openid-configuration"


@dataclass
class _CachedProvider:
    """What is known of an issuer. The times are those of `time.monotonic`."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    metadata: ProviderMetadata | None = None
    metadata_expires_at: float = 0.0
    failed_until: float = 0.0
    keys: KeySet | None = None
    keys_fetched_at: float = 0.0


class ProviderDirectory:
    """Fetches what is not cached. Concurrent requests for an issuer wait for each other."""

    def __init__(self, http: ProviderHttpClient) -> None:
        self._http = http
        self._providers: dict[str, _CachedProvider] = {}  # only issuers that the operator configured

    async def get_metadata(self, issuer: str) -> ProviderMetadata:
        """The discovery document of an issuer. Raises ProviderError."""
        cached = self._providers.setdefault(issuer, _CachedProvider())
        async with cached.lock:
            now = time.monotonic()
            if cached.metadata is None or cached.metadata_expires_at < now:
                if cached.failed_until > now:
                    raise ProviderError("the provider failed a moment ago")
                try:
                    cached.metadata = await self._fetch_metadata(issuer)
                except ProviderError:
                    cached.failed_until = time.monotonic() + FAILURE_LIFETIME
                    raise
                cached.metadata_expires_at = time.monotonic() + LIFETIME
            return cached.metadata

    async def get_keys(self, metadata: ProviderMetadata, *, refresh: bool = False) -> KeySet:
        """The keys of a provider. With `refresh`, those that were fetched in the last minute are still used.

        Raises ProviderError.
        """
        cached = self._providers.setdefault(metadata.issuer, _CachedProvider())
        async with cached.lock:
            max_age = MIN_REFRESH_INTERVAL if refresh else LIFETIME
            if cached.keys is None or cached.keys_fetched_at + max_age < time.monotonic():
                document = await self._http.get(KeySetDocument, metadata.jwks_uri)
                cached.keys, cached.keys_fetched_at = parse_keys(document.keys), time.monotonic()
            return cached.keys

    async def _fetch_metadata(self, issuer: str) -> ProviderMetadata:
        metadata = await self._http.get(ProviderMetadata, issuer.rstrip("/") + DISCOVERY_PATH)
        if metadata.issuer != issuer:
            raise ProviderError("the discovery document has another issuer")
        urls = (
            metadata.authorization_endpoint,
            metadata.token_endpoint,
            metadata.jwks_uri,
            metadata.userinfo_endpoint or metadata.jwks_uri,
        )
        if not all(is_allowed_endpoint(url, issuer) for url in urls):
            raise ProviderError("a URL of the discovery document doesn't start with https://")
        return metadata
