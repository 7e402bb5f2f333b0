"""Signatures (Standard Webhooks 1.0.0), the schedule of attempts, and which addresses may be called."""

import base64
import hashlib
import hmac
import re
import secrets
from collections.abc import Sequence
from datetime import timedelta
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import urlsplit

SECRET_PREFIX = "whsec_"  # noqa: S105 - of the standard, and in front of every secret
OLD_SECRET_GRACE_PERIOD = timedelta(hours=24)
DISABLE_AFTER = timedelta(days=5)  # of nothing but failures
ATTEMPT_TIMEOUT = 15.0  # seconds for one attempt
HTTP_GONE = 410  # the status by which a receiver says that it wants nothing more

# How long after the attempt before each one is made.
RETRY_DELAYS = tuple(
    timedelta(seconds=seconds)
    for seconds in (0, 5, 300, 1800, 7200, 5 * 3600, 10 * 3600, 14 * 3600, 20 * 3600, 24 * 3600)
)
MAX_JITTER = 0.1  # an attempt is late by up to this part of its wait, so that not all come at once

IPAddress = IPv4Address | IPv6Address
IPNetwork = IPv4Network | IPv6Network

# What is not on the public internet, or leads back from it: RFC 6890 and its later entries.
_BLOCKED_NETWORKS: tuple[IPNetwork, ...] = tuple(
    ip_network(each)
    for each in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.31.196.0/24",
        "192.52.193.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "192.175.48.0/24",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
        # Of IPv6 only 2000::/3 is the internet; what is mapped or translated from IPv4 lies outside, but for 6to4 and
        # Teredo.
        "::/3",
        "4000::/2",
        "8000::/1",
        "2001::/23",
        "2001:db8::/32",
        "2002::/16",
        "2620:4f:8000::/48",
        "3fff::/20",
    )
)
ANY_NETWORK: tuple[IPNetwork, ...] = (ip_network("0.0.0.0/0"), ip_network("::/0"))
_FORBIDDEN_CHARACTERS = re.compile(r"[^\x21-\x7e]|\\")
_AUTHORITY = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^\[\]:%]+)(:[0-9]*)?")
# Without a dot at the end: no certificate is for a name that has one.
_HOST_NAME = re.compile(r"(?=.{1,253}$)[a-z0-9_][a-z0-9_-]{0,62}(\.[a-z0-9_-]{1,63})*")
_NUMERIC_HOST = re.compile(r"(0x[0-9a-f]*|[0-9]+)(\.(0x[0-9a-f]*|[0-9]+))*")
_ALLOWED_LOW_PORTS = {80, 443}  # the others below 1024 are other services'


def new_secret() -> str:
    """`whsec_` and the base64 of 32 random bytes."""
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def validate_secret(secret: str) -> str | None:
    """What is wrong with a secret."""
    try:
        key = base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
    except ValueError:
        key = b""
    is_valid = secret.startswith(SECRET_PREFIX) and 24 <= len(key) <= 64
    return None if is_valid else f"must be {SECRET_PREFIX} and the base64 of 24 to 64 bytes"


def sign_message(secret_keys: Sequence[str], message_id: str, timestamp: int, body: bytes) -> str:
    """The header `webhook-signature`: one signature for each secret, with spaces between them."""
    content = f"{message_id}.{timestamp}.".encode() + body
    return " ".join(_sign(each, content) for each in secret_keys)


def _sign(secret: str, content: bytes) -> str:
    key = base64.b64decode(secret.removeprefix(SECRET_PREFIX))
    return "v1," + base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()


def retry_delay(attempt_count: int, jitter: float, retry_after: float | None = None) -> timedelta | None:
    """How long to wait after `attempt_count` failed attempts; null after the last one. `jitter` is from 0 to 1.

    `retry_after`: seconds that the receiver asked for, of which no more than the schedule's longest wait are kept.
    """
    if attempt_count >= len(RETRY_DELAYS):
        return None
    delay = RETRY_DELAYS[attempt_count] * (1 + MAX_JITTER * jitter)
    return max(delay, timedelta(seconds=min(retry_after or 0.0, RETRY_DELAYS[-1].total_seconds())))


def is_blocked(address: IPAddress, allowed_networks: Sequence[IPNetwork]) -> bool:
    """Whether an address is none of the public internet, and in no network that the operator allows."""
    return _is_in_any(address, _BLOCKED_NETWORKS) and not _is_in_any(address, allowed_networks)


def _is_in_any(address: IPAddress, networks: Sequence[IPNetwork]) -> bool:
    return any(address in network for network in networks)  # none of the other version has it


def validate_url(url: str, allowed_networks: Sequence[IPNetwork]) -> str | None:
    """What is wrong with an endpoint's address, as far as it can be known without asking for its name."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return "must be a URL, such as https://example.com/hooks"
    checks = {
        "must be ASCII without spaces and backslashes: percent-encode what is not": bool(
            _FORBIDDEN_CHARACTERS.search(url)
        ),
        "must not contain credentials": parts.username is not None or parts.password is not None,
        "must be a URL, such as https://example.com/hooks": not _AUTHORITY.fullmatch(parts.netloc),
        "must not contain a fragment": "#" in url,
        "must have port 443, 80, or one above 1023": port is not None
        and port < 1024
        and port not in _ALLOWED_LOW_PORTS,
    }
    error = next((error for error, found in checks.items() if found), None)
    return error or _validate_host(parts.scheme, parts.hostname or "", allowed_networks)


def _validate_host(scheme: str, host: str, allowed_networks: Sequence[IPNetwork]) -> str | None:
    address = parse_ip(host)
    if address is not None and is_blocked(address, allowed_networks):
        return "must not be an address of a private network"
    if address is None and not _HOST_NAME.fullmatch(host):
        return "must have a host name of letters, digits and hyphens"
    if address is None and _NUMERIC_HOST.fullmatch(host):
        return "must have a host name, or an address in its usual form"
    if scheme == "https":
        return None
    if scheme == "http" and address is not None and _is_in_any(address, allowed_networks):
        return None
    return "must begin with https://"


def parse_ip(host: str) -> IPAddress | None:
    """The address that a host is, where it is one and no name."""
    try:
        return ip_address(host)
    except ValueError:
        return None
