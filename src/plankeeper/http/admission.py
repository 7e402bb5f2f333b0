"""Who gets in: as many at once as the server can bear, with a key that is known, within its quota."""

from ipaddress import IPv6Address, IPv6Network
from uuid import UUID

from starlette.types import Scope

from plankeeper.http.auth import Authenticate, Grant, bearer_key, plan_manager_of, require
from plankeeper.http.context import Need
from plankeeper.http.errors import Refusal
from plankeeper.http.rate_limit import Quotas, Standing
from plankeeper.http.requests import Visit
from plankeeper.settings import Settings


class Admission:
    """One worker's door. `with admission:` a request is inside; raises Refusal where there is no place."""

    def __init__(self, authenticate: Authenticate, quotas: Quotas, settings: Settings) -> None:
        self._authenticate = authenticate
        self._quotas = quotas
        self._settings = settings
        self.inside = 0

    def __enter__(self) -> None:
        """A place for one request. Refused early is better than answered late: those inside stay quick."""
        if self.inside >= self._settings.max_concurrent_requests:
            raise Refusal("service_unavailable", "The server is too busy just now.", headers={"retry-after": "1"})
        self.inside += 1

    def __exit__(self, *_error: object) -> None:
        self.inside -= 1

    async def admit(self, visit: Visit, scope: Scope, need: Need) -> tuple[Grant, UUID]:
        """The key's grant and the plan manager; raises a Refusal. Every request of a known key counts."""
        try:
            visit.grant = grant = await self._authenticate(bearer_key(visit.headers.get(b"authorization")))
        except Refusal as refusal:
            if refusal.status == 401:
                await self._count_failure(scope)
            raise
        quota = self._settings.rate_limit if grant.rate_limit is None else grant.rate_limit
        standing = await self._quotas.take(grant.subject, quota) if quota else None
        if standing:
            visit.quota = standing.headers
        visit.plan_manager_id = plan_manager_id = plan_manager_of(grant, visit.headers.get(b"x-plan-manager-id"))
        require(grant, need)
        if standing and standing.refused:
            raise _exceeded(standing)
        return grant, plan_manager_id

    async def count_guess(self, scope: Scope) -> None:
        """One attempt at a password or a code, by the address; raises Refusal where it had its share of the minute.

        Counted before it is known whether it is right, and apart from bad keys: those close nobody's way in.
        """
        await self._count(f"guess:{network_of(scope)}")

    async def _count_failure(self, scope: Scope) -> None:
        """Only who has no good key is counted by address: an office may stand behind one."""
        await self._count(f"address:{network_of(scope)}")

    async def _count(self, subject: str) -> None:
        if self._settings.auth_failure_rate_limit:
            standing = await self._quotas.take(subject, self._settings.auth_failure_rate_limit)
            if standing.refused:
                raise _exceeded(standing) from None


def network_of(scope: Scope) -> str:
    """The client's address; of version 6 its /64, which is the least that one client has."""
    address: str = scope["client"][0] if scope.get("client") else ""
    try:
        found = IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    return str(found.ipv4_mapped or IPv6Network((found, 64), strict=False))


def _exceeded(standing: Standing) -> Refusal:
    return Refusal("rate_limit_exceeded", headers={"retry-after": standing.retry_after})
