"""What a worker reports of a quota, and what it is granted."""

from datetime import datetime
from typing import NamedTuple

from msgspec import Struct


class UsageReport(NamedTuple):
    """What a worker did with what it was granted for `minute`, and what it wants of the minute that it is now."""

    subject: str
    minute: datetime
    quota: int
    used: int
    returned: int
    requested: int


class Lease(Struct):
    """Where a quota stands: `used` by all, and what the worker was granted now; the minute ends in `seconds`."""

    subject: str
    minute: datetime
    used: int
    lease: int
    seconds: float
