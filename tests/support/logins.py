"""Sign-ins whose failures are values, so that tests can compare them."""

from collections.abc import Coroutine
from typing import Any, NamedTuple

from plankeeper.access.accounts.credentials import LoginError


class FailedLogin(NamedTuple):
    """A LoginError as a value."""

    retry_after: float


async def login_outcome(login: Coroutine[Any, Any, Any]) -> Any:
    """The result of a login, or a FailedLogin."""
    try:
        return await login
    except LoginError as error:
        return FailedLogin(error.retry_after)
