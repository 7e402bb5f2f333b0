"""The stored part of an attempt's response, and its conversion to readable text."""

import pytest

from plankeeper.webhooks.schemas import (
    MAX_BODY_BYTES,
    AttemptDetail,
    build_detail,
    readable_text,
)


@pytest.mark.parametrize(
    "content, text",
    [
        (b"", ""),
        (b"plain", "plain"),
        ("Nguyễn\tđã\nnhận".encode(), "Nguyễn\tđã\nnhận"),
        (b"two\r\nlines", "two\nlines"),
        (b"\xff\xfe\x00\x1b[31mred", r"\xff\xfe\x00\x1b[31mred"),
        ("left\u202etfel\u200b".encode(), r"left\u202etfel\u200b"),
        ("cut ễ".encode()[:-1], "cut "),
        (b"carriage\rreturn", r"carriage\rreturn"),
    ],
)
def test_a_response_becomes_text_that_shows_each_byte(content: bytes, text: str) -> None:
    assert readable_text(content) == text


def test_a_detail_has_the_headers_and_the_body() -> None:
    headers = [("webhook-id", "1"), ("webhook-signature", "v1,abc")]
    assert build_detail(3, headers, 500, b"down") == AttemptDetail(3, dict(headers), "down", is_truncated=False)
    assert build_detail(1, headers, 200, b"x" * MAX_BODY_BYTES).is_truncated
    assert build_detail(1, headers, None, b"").response_body is None
