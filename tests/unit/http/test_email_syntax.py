"""Email addresses: the cached check accepts exactly what the library accepts."""

import pytest
from email_validator import EmailNotValidError, validate_email
from hypothesis import given, settings
from hypothesis import strategies as st

from plankeeper.core.fields import is_email

LOCAL_PARTS = st.one_of(st.text("aZ09._+-'\"!# \\@é\n", max_size=8), st.text("az09._+-", min_size=1, max_size=70))
LABELS = st.one_of(
    st.sampled_from(
        ["example", "com", "au", "local", "localhost", "test", "invalid", "onion", "arpa", "xn--nxasmq6b", "xn--", "é"]
    ),
    st.text("aB0-_[]é ", max_size=6),
    st.text("az09-", min_size=50, max_size=70),
)
DOMAINS = st.lists(LABELS, min_size=1, max_size=6).map(".".join)


def accepts(value: str) -> bool:
    try:
        validate_email(value, check_deliverability=False, test_environment=True)
    except EmailNotValidError:
        return False
    return True


@settings(max_examples=200, deadline=None)
@given(LOCAL_PARTS, DOMAINS)
def test_the_check_accepts_what_the_library_accepts(local_part: str, domain: str) -> None:
    value = f"{local_part}@{domain}"[:254]
    assert is_email(value) == accepts(value)


@pytest.mark.parametrize(
    "value, is_valid",
    [
        ("jo.o'neill+plan@example.com.au", True),
        ("Jo_1-2@Sub.Example.COM", True),
        ("ż@example.com", True),
        ("jo@bücher.example", True),
        (f"{'a' * 64}@example.com", True),
        (f"{'a' * 65}@example.com", True),
        (f"a@{'b' * 63}.{'c' * 63}.{'d' * 63}.{'e' * 56}.au", True),
        ("jo@example.com\n", False),
        ("jo..b@example.com", False),
        (".jo@example.com", False),
        ("jo@localhost", False),
        ("jo@printer.local", False),
        ("jo@-example.com", False),
        ("jo@example.com.", False),
        ("jo@xn--a.com", False),
        (f"jo@{'a' * 64}.com", False),
        ("jo@@example.com", False),
        ("jo", False),
    ],
)
def test_common_and_broken_addresses(value: str, *, is_valid: bool) -> None:
    assert is_email(value) == accepts(value) == is_valid
