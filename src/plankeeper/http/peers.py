"""The peers of connections: which of them are trusted proxies, and how many connections each of the others has."""

import logging
from collections import Counter
from collections.abc import Sequence
from ipaddress import ip_address, ip_network

from plankeeper.http.admission import client_network

log = logging.getLogger(__name__)


class Peers:
    """The peers of one worker. Connections are counted by address, for IPv6 by /64; trusted proxies are not counted."""

    def __init__(self, trusted_proxies: Sequence[str], max_connections_per_address: int) -> None:
        self._trusted_networks = [ip_network(each) for each in trusted_proxies]
        self._max_connections = max_connections_per_address
        self._connections = Counter[str]()
        self._warnings = set[str]()

    def is_trusted(self, address: str) -> bool:
        try:
            ip = ip_address(address)
        except ValueError:
            return False
        return any(ip in network for network in self._trusted_networks)

    def add(self, address: str) -> bool:
        """Counts a connection until `remove`; false if its address has too many."""
        network = client_network({"client": (address, 0)})
        self._connections[network] += 1
        if self._connections[network] <= self._max_connections:
            return True
        self._warn_once(
            "an address has more connections than PLANKEEPER_MAX_CONNECTIONS_PER_ADDRESS: if it is your proxy, add it"
            " to PLANKEEPER_TRUSTED_PROXIES"
        )
        return False

    def remove(self, address: str) -> None:
        network = client_network({"client": (address, 0)})
        self._connections[network] -= 1
        if not self._connections[network]:
            del self._connections[network]

    def warn_about_untrusted_proxy(self) -> None:
        """Logs that X-Forwarded-For came from a peer that is not a trusted proxy."""
        self._warn_once(
            "X-Forwarded-For is ignored, because its sender is not in PLANKEEPER_TRUSTED_PROXIES: if it is your proxy,"
            " all of its clients share one limit of invalid credentials and connections"
        )

    def _warn_once(self, message: str) -> None:
        """Log lines have no addresses, and clients can't fill the log."""
        if message not in self._warnings:
            self._warnings.add(message)
            log.warning(message)
