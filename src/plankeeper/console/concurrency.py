"""Limits for work of which one worker does only a few at a time."""

from plankeeper.http.errors import ApiError


class ConcurrencyLimit:
    """A context manager that takes one of `count` slots; raises ApiError if all are in use."""

    def __init__(self, count: int) -> None:
        self._available = count

    def require_available(self) -> None:
        """Raises ApiError if no slot is free."""
        if self._available == 0:
            raise ApiError("service_unavailable", "The server is too busy.", headers={"retry-after": "5"})

    def __enter__(self) -> None:
        self.require_available()
        self._available -= 1

    def __exit__(self, *_error: object) -> None:
        self._available += 1
