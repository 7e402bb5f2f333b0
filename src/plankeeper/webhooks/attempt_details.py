"""What an attempt sent and received, for people who look for the reason of a failure."""

import codecs
from collections.abc import Sequence

from msgspec import Struct

MAX_BODY_BYTES = 1024  # of a response


class AttemptDetail(Struct):
    """The headers of an attempt and the beginning of the response's body. Attempts of earlier versions have none."""

    attempt: int  # its number, from 1
    request_headers: dict[str, str]
    response_body: str | None  # None without a response of a public address
    is_truncated: bool = False  # whether the body may be longer


def build_detail(
    attempt: int, request_headers: Sequence[tuple[str, str]], status_code: int | None, response_body: bytes | None
) -> AttemptDetail:
    body = None if status_code is None or response_body is None else readable_text(response_body)
    return AttemptDetail(attempt, dict(request_headers), body, len(response_body or b"") >= MAX_BODY_BYTES)


def readable_text(content: bytes) -> str:
    r"""The beginning of a response as text. Bytes that aren't UTF-8 and characters that aren't shown become `\xff`.

    Such characters could change how the text around them is read, and PostgreSQL stores no NUL.
    """
    # A character that is cut off at the end is left out.
    text = codecs.getincrementaldecoder("utf-8")("backslashreplace").decode(content)
    return "".join(
        each if each.isprintable() or each in "\n\t" else _escape(each) for each in text.replace("\r\n", "\n")
    )


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode()
