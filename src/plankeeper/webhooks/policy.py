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
OLD_SECRET_SIGNS = timedelta(hours=24)
DISABLED_AFTER = timedelta(days=5)  # of nothing but failures
TIMEOUT = 15.0  # seconds for one attempt
GONE = 410  # the status by which a receiver says that it wants nothing more

# How long after the attempt before each one is made.
SCHEDULE = tuple(
    timedelta(seconds=seconds)
    for seconds in (0, 5, 300, 1800, 7200, 5 * 3600, 10 * 3600, 14 * 3600, 20 * 3600, 24 * 3600)
)
JITTER = 0.1  # an attempt is late by up to this part of its wait, so that not all come at once

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

# What is not on the public internet, or leads back from it: RFC 6890 and its later entries.
_REFUSED: tuple[Network, ...] = tuple(
    ip_network(each)
    for each in (
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
        "192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16",
        "192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
        # Of IPv6 only 2000::/3 is the internet; what is mapped or translated from IPv4 lies outside, but for 6to4 and
        # Teredo.
        "::/3", "4000::/2", "8000::/1", "2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20",
    )
)  # fmt: skip
EVERYWHERE: tuple[Network, ...] = (ip_network("0.0.0.0/0"), ip_network("::/0"))
_ODD = re.compile(r"[^\x21-\x7e]|\\")
_AUTHORITY = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^\[\]:%]+)(:[0-9]*)?")
# Without a dot at the end: no certificate is for a name that has one.
_NAME = re.compile(r"(?=.{1,253}$)[a-z0-9_][a-z0-9_-]{0,62}(\.[a-z0-9_-]{1,63})*")
_NUMBER = re.compile(r"(0x[0-9a-f]*|[0-9]+)(\.(0x[0-9a-f]*|[0-9]+))*")
_LOW_PORTS = {80, 443}  # the others below 1024 are other services'


def new_secret() -> str:
    """`whsec_` and the base64 of 32 random bytes."""
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def fault_of_secret(secret: str) -> str | None:
    """What is wrong with a secret."""
    try:
        key = base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
    except ValueError:
        key = b""
    fits = secret.startswith(SECRET_PREFIX) and 24 <= len(key) <= 64
    return None if fits else f"must be {SECRET_PREFIX} and the base64 of 24 to 64 bytes"


def signature(secret_keys: Sequence[str], message_id: str, timestamp: int, body: bytes) -> str:
    """The header `webhook-signature`: one signature for each secret, with spaces between them."""
    signed = f"{message_id}.{timestamp}.".encode() + body
    return " ".join(_signed(each, signed) for each in secret_keys)


def _signed(secret: str, content: bytes) -> str:
    key = base64.b64decode(secret.removeprefix(SECRET_PREFIX))
    return "v1," + base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()


def next_wait(made: int, luck: float, retry_after: float | None = None) -> timedelta | None:
    """How long to wait after `made` attempts have failed; null where the last one has. `luck` is from 0 to 1.

    `retry_after`: seconds that the receiver asked for, of which no more than the schedule's longest wait are kept.
    """
    if made >= len(SCHEDULE):
        return None
    wait = SCHEDULE[made] * (1 + JITTER * luck)
    return max(wait, timedelta(seconds=min(retry_after or 0.0, SCHEDULE[-1].total_seconds())))


def is_refused(address: Address, allowed: Sequence[Network]) -> bool:
    """Whether an address is none of the public internet, and in no network that the operator allows."""
    return _within(address, _REFUSED) and not _within(address, allowed)


def _within(address: Address, networks: Sequence[Network]) -> bool:
    return any(address in network for network in networks)  # none of the other version has it


def fault_of_url(url: str, allowed: Sequence[Network]) -> str | None:
    """What is wrong with an endpoint's address, as far as it can be known without asking for its name."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return "must be a URL, such as https://example.com/hooks"
    faults = {
        "must be ASCII without spaces and backslashes: percent-encode what is not": bool(_ODD.search(url)),
        "must not contain credentials": parts.username is not None or parts.password is not None,
        "must be a URL, such as https://example.com/hooks": not _AUTHORITY.fullmatch(parts.netloc),
        "must not contain a fragment": "#" in url,
        "must have port 443, 80, or one above 1023": port is not None and port < 1024 and port not in _LOW_PORTS,
    }
    fault = next((fault for fault, found in faults.items() if found), None)
    return fault or _fault_of_host(parts.scheme, parts.hostname or "", allowed)


def _fault_of_host(scheme: str, host: str, allowed: Sequence[Network]) -> str | None:
    literal = literal_of(host)
    if literal is not None and is_refused(literal, allowed):
        return "must not be an address of a private network"
    if literal is None and not _NAME.fullmatch(host):
        return "must have a host name of letters, digits and hyphens"
    if literal is None and _NUMBER.fullmatch(host):
        return "must have a host name, or an address in its usual form"
    if scheme == "https":
        return None
    if scheme == "http" and literal is not None and _within(literal, allowed):
        return None
    return "must begin with https://"


def literal_of(host: str) -> Address | None:
    """The address that a host is, where it is one and no name."""
    try:
        return ip_address(host)
    except ValueError:
        return None
