"""Work that few may do at a time."""

from plankeeper.http.errors import Refusal


class Places:
    """`with places:` one is taken; raises Refusal where none is free."""

    def __init__(self, count: int) -> None:
        self._free = count

    def require(self) -> None:
        """Raises Refusal where none is free."""
        if self._free == 0:
            raise Refusal("service_unavailable", "The server is too busy just now.", headers={"retry-after": "5"})

    def __enter__(self) -> None:
        self.require()
        self._free -= 1

    def __exit__(self, *_error: object) -> None:
        self._free += 1
