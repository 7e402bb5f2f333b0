"""Forms and queries as they were sent: names with their texts."""

from collections.abc import Mapping
from typing import TypeVar
from urllib.parse import parse_qsl

from msgspec import Struct
from starlette.types import Receive

from plankeeper.edge.errors import Invalid, Refusal
from plankeeper.edge.request import ClientGone
from plankeeper.edge.validation import shaped

S = TypeVar("S", bound=Struct)

MOST = 64 * 1024  # bytes of a form
_FORM = b"application/x-www-form-urlencoded"


class Form(dict[str, list[str]]):
    """The texts of each name."""

    def text(self, name: str) -> str:
        """The only text of a name without the spaces around it; empty where there is none."""
        found = self.get(name, [])
        return found[0].strip() if len(found) == 1 else ""

    def secret(self, name: str) -> str:
        """A text as it was typed."""
        found = self.get(name, [])
        return found[0] if len(found) == 1 else ""

    def several(self, name: str) -> list[str]:
        return self.get(name, [])


def form_of(text: bytes) -> Form:
    """What stands in a query or in the body of a form; raises Invalid."""
    try:
        pairs = parse_qsl(text.decode(), keep_blank_values=True, errors="strict", max_num_fields=200)
    except ValueError:
        raise Invalid(form="must be percent-encoded UTF-8") from None
    if any("\0" in part for pair in pairs for part in pair):
        raise Invalid(form="must not contain the character NUL")
    form = Form()
    for name, value in pairs:
        form.setdefault(name, []).append(value)
    return form


async def read_form(headers: Mapping[bytes, bytes], receive: Receive) -> Form:
    """The form in a body; raises Refusal and ClientGone."""
    if headers.get(b"content-type", b"").partition(b";")[0].strip().lower() != _FORM:
        raise Refusal("unsupported_media_type", "The body is not a form.")
    body = b""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        body += message.get("body", b"")
        if len(body) > MOST:
            raise Refusal("body_too_large", "The form is too long.")
        if not message.get("more_body"):
            return form_of(body)


def struct_of(shape: type[S], values: Mapping[str, object]) -> S:
    """Values as the API would take them; raises Invalid naming every fault."""
    parsed, faults = shaped(shape, values)
    if parsed is None:
        raise Invalid(*faults)
    return parsed
