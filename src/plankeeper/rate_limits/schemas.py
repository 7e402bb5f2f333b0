"""Usage reports of workers, and the leases that they receive."""

from datetime import datetime

from msgspec import Struct


class UsageReport(Struct):
    """A worker's usage of its lease for `minute`, and the number of requests that it asks for in the current minute."""

    subject: str
    minute: datetime
    quota: int
    used: int
    returned: int
    requested: int


class Lease(Struct):
    """The quota's usage by all workers, and the new lease of this worker. The minute ends in `seconds`."""

    subject: str
    minute: datetime
    used: int
    lease: int
    seconds: float
