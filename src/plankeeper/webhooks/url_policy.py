"""The allowed URLs of endpoints: public addresses only, so that a webhook cannot reach an internal service."""

import re
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import urlsplit

IPAddress = IPv4Address | IPv6Address
IPNetwork = IPv4Network | IPv6Network

# Networks outside the public internet, or that lead back from it: RFC 6890 and its later entries.
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
        "168.63.129.16/32",  # a public address, but inside Azure it leads to services of the virtual machine's host
        # The public IPv6 internet is 2000::/3. Addresses mapped or translated from IPv4 are outside it, except for
        # 6to4 and Teredo.
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
# Without a trailing dot: no certificate contains a name that ends with a dot.
_HOST_NAME = re.compile(r"(?=.{1,253}$)[a-z0-9_][a-z0-9_-]{0,62}(\.[a-z0-9_-]{1,63})*")
_NUMERIC_HOST = re.compile(r"(0x[0-9a-f]*|[0-9]+)(\.(0x[0-9a-f]*|[0-9]+))*")
_ALLOWED_LOW_PORTS = {80, 443}  # the others below 1024 belong to other services
PRIVATE_ADDRESS = (
    "must not be an address in a private network, unless the operator allows the network with "
    "PLANKEEPER_WEBHOOK_ALLOWED_NETWORKS; to receive events on your own computer, you can also use plankeeper listen"
)


def is_blocked(address: IPAddress, allowed_networks: Sequence[IPNetwork]) -> bool:
    """Whether an address is outside the public internet and outside the networks that the operator allows."""
    return _is_in_any(address, _BLOCKED_NETWORKS) and not _is_in_any(address, allowed_networks)


def _is_in_any(address: IPAddress, networks: Sequence[IPNetwork]) -> bool:
    return any(address in network for network in networks)  # a network contains no address of the other IP version


def validate_url(url: str, allowed_networks: Sequence[IPNetwork]) -> str | None:
    """The error message for an invalid URL of an endpoint; None for a valid one. Does not resolve the host name."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return "must be a URL, such as https://example.com/hooks"
    has_reserved_port = port is not None and port < 1024 and port not in _ALLOWED_LOW_PORTS
    checks = {
        "must be ASCII without spaces and backslashes: percent-encode other characters": bool(
            _FORBIDDEN_CHARACTERS.search(url)
        ),
        "must not contain credentials": parts.username is not None or parts.password is not None,
        "must be a URL, such as https://example.com/hooks": not _AUTHORITY.fullmatch(parts.netloc),
        "must not contain a fragment": "#" in url,
        "must have port 443, port 80 or a port above 1023": has_reserved_port,
    }
    error = next((message for message, failed in checks.items() if failed), None)
    return error or _validate_host(parts.scheme, parts.hostname or "", allowed_networks)


def _validate_host(scheme: str, host: str, allowed_networks: Sequence[IPNetwork]) -> str | None:
    address = parse_ip(host)
    if address is not None and is_blocked(address, allowed_networks):
        return PRIVATE_ADDRESS
    if address is None and not _HOST_NAME.fullmatch(host):
        return "must have a host name that consists of letters, digits and hyphens"
    if address is None and _NUMERIC_HOST.fullmatch(host):
        return "must have a host name or an IP address in its standard notation"
    is_allowed_address = address is not None and _is_in_any(address, allowed_networks)
    if scheme == "https" or (scheme == "http" and is_allowed_address):
        return None
    if scheme == "http" and allowed_networks:
        return "must start with https://, or with http:// and an IP address of an allowed network, not its name"
    return "must start with https://"


def parse_ip(host: str) -> IPAddress | None:
    """The IP address that a host consists of; None for a host name."""
    try:
        return ip_address(host)
    except ValueError:
        return None
