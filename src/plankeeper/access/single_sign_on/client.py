"""The HTTP client for providers: small JSON documents, fetched within a few seconds and without redirects."""

import asyncio
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from ipaddress import ip_address
from typing import Any, TypeVar, cast
from urllib.parse import urlencode, urlsplit

import httpcore
import msgspec
from joserfc.jwk import KeySet
from msgspec import Struct

from plankeeper.access.single_sign_on.id_token import parse_keys
from plankeeper.access.single_sign_on.schemas import KeySetDocument, ProviderMetadata

S = TypeVar("S", bound=Struct)

TIMEOUT = 10.0  # seconds for one request
MAX_CONNECTIONS = 20
MAX_RESPONSE_BYTES = 256 * 1024
MAX_URL_LENGTH = 2000
_HTTP_ERRORS = (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError)
_CONNECTION_ERRORS = (OSError, TimeoutError, UnicodeError, *_HTTP_ERRORS)


class ProviderError(Exception):
    """A provider can't be reached, or its response violates OpenID Connect. The message is for the log."""


def is_allowed_url(url: str) -> bool:
    """Whether a provider may have a URL: https, or http on a loopback address, for tests and proxies."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return False
    is_plain = url.isascii() and url.isprintable() and len(url) <= MAX_URL_LENGTH and not set(url) & set(' \\"<>#')
    if not is_plain or not parts.hostname or "@" in parts.netloc:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and _is_loopback(parts.hostname))


def is_allowed_endpoint(url: str, issuer: str) -> bool:
    """Whether the discovery document of an issuer may contain a URL: http only if the operator chose http for it.

    Otherwise the provider of one organisation could make the server call services on its own machine.
    """
    return is_allowed_url(url) and (urlsplit(url).scheme == "https" or urlsplit(issuer).scheme == "http")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


@cache
def _system_trust() -> ssl.SSLContext:
    """The certificates of the system, which take 30 ms to read."""
    return ssl.create_default_context()


class ProviderHttpClient:
    """Opens a new connection for each request."""

    def __init__(self, ssl_context: ssl.SSLContext | None = None) -> None:
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=ssl_context or _system_trust(),
            max_connections=MAX_CONNECTIONS,
            max_keepalive_connections=0,
            network_backend=cast("Any", httpcore).AnyIOBackend(),
        )

    async def get(self, document_type: type[S], url: str, headers: Mapping[str, str] | None = None) -> S:
        """A JSON document. Raises ProviderError."""
        return _decode(document_type, await self._send("GET", url, {**(headers or {})}, b""))

    async def post_form(
        self, document_type: type[S], url: str, form: Mapping[str, str], headers: Mapping[str, str]
    ) -> S:
        """The JSON document that responds to a form. Raises ProviderError."""
        content_type = {"content-type": "application/x-www-form-urlencoded"}
        return _decode(
            document_type, await self._send("POST", url, {**headers, **content_type}, urlencode(form).encode())
        )

    async def _send(self, method: str, url: str, headers: dict[str, str], body: bytes) -> bytes:
        if not is_allowed_url(url):
            raise ProviderError("a URL of the provider doesn't start with https://")
        sent = [("accept", "application/json"), ("host", urlsplit(url).netloc), ("connection", "close")]
        sent += [*headers.items(), *([("content-length", str(len(body)))] if body else [])]
        try:
            async with asyncio.timeout(TIMEOUT):
                response = await self._pool.handle_async_request(
                    httpcore.Request(method, url, headers=sent, content=body)
                )
                try:
                    content = await _read(response)
                finally:
                    await response.aclose()
        except _CONNECTION_ERRORS as error:
            raise ProviderError(f"the connection to the provider failed: {type(error).__name__}") from None
        if response.status != 200:
            raise ProviderError(
                f"the provider's response to {method} {urlsplit(url).path} has status {response.status}"
            )
        return content


async def _read(response: httpcore.Response) -> bytes:
    content = bytearray()
    async for chunk in response.aiter_stream():
        content += chunk
        if len(content) > MAX_RESPONSE_BYTES:
            raise ProviderError("a response of the provider is too long")
    return bytes(content)


def _decode(document_type: type[S], content: bytes) -> S:
    try:
        return msgspec.json.decode(content, type=document_type)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise ProviderError(f"a response of the provider is invalid: {_describe(error)}") from None


def _describe(error: Exception) -> str:
    """The field that is invalid; the text of a document that isn't JSON stays out of the log."""
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return str(error) if isinstance(error, msgspec.ValidationError) else "it is not JSON"


LIFETIME = 3600.0  # seconds that documents and keys are cached
MIN_REFRESH_INTERVAL = 60.0  # seconds between two requests for keys because of unknown key ids
FAILURE_LIFETIME = 5.0  # seconds that a failed request for a discovery document is not repeated
DISCOVERY_PATH = "/.well-known/openid-configuration"


@dataclass
class _CachedProvider:
    """The cached documents of an issuer. The times are those of `time.monotonic`."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    metadata: ProviderMetadata | None = None
    metadata_expires_at: float = 0.0
    failed_until: float = 0.0
    keys: KeySet | None = None
    keys_fetched_at: float = 0.0


class ProviderDirectory:
    """Fetches documents that are not cached. Concurrent requests for an issuer wait for each other."""

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
        urls = (metadata.authorization_endpoint, metadata.token_endpoint, metadata.jwks_uri, metadata.userinfo_endpoint)
        if not all(is_allowed_endpoint(url, issuer) for url in urls if url):
            raise ProviderError("a URL of the discovery document doesn't start with https://")
        return metadata
