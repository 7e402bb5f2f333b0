"""Roles, passwords, waits, tokens and codes."""

import time
import unicodedata

import pytest

from plankeeper.access.accounts.passwords import validate_password
from plankeeper.access.policy import (
    ACCOUNT_FREE_FAILURES,
    ACCOUNT_MAX_DELAY,
    MAX_DELAY,
    ROLES,
    is_role_at_least,
    login_delay,
)
from plankeeper.access.tokens import (
    csrf_token,
    hash_token,
    new_recovery_codes,
    new_token,
    parse_recovery_code,
)
from plankeeper.core.formatting import single_line


def test_a_role_includes_the_permissions_of_lower_roles() -> None:
    allowed = {(role, needed) for role in ROLES for needed in ROLES if is_role_at_least(role, needed)}
    assert allowed == {
        ("viewer", "viewer"), ("manager", "viewer"), ("manager", "manager"),
        ("owner", "viewer"), ("owner", "manager"), ("owner", "owner"),
    }  # fmt: skip
    assert not is_role_at_least(None, "viewer")
    assert not is_role_at_least("admin", "viewer")


@pytest.mark.parametrize(
    "password", ["nine violet umbrellas", "x7!kQ#92mZp&", "Zwölf grüne Äpfel", "violet-wattlebird-93-lantern"]
)
def test_a_good_password_is_accepted(password: str) -> None:
    assert validate_password(password, "ada@example.com") is None


@pytest.mark.parametrize(
    "password",
    [
        "password1234", "Password2024!", "P@ssw0rd12345", "qwertyuiopas", "123456789012", "210987654321",
        "abcdefghijkl", "aaaaaaaaaaaa", "121212121212", "Welcome123456", "plankeeper99", "passwordpassword",
        "letmein2026!!", "98765432109876543210", "michael12345", "jennifer1234", "Summer2026!!", "Sydney2026!!!",
        "ndis12345678", "P@55w0rd1234", "1234567890ab", "qwertyuiop12", "abc123abc123", "trustno1trustno1",
        "Umbrella2026!!", "!!1942monkey1942!!", "p" * 60 + "abcde", "Plan Manager 2026", "20261122 20261122",
    ],
)  # fmt: skip
def test_a_common_password_is_rejected(password: str) -> None:
    assert validate_password(password, "ada@example.com") == "is too easy to guess"


@pytest.mark.parametrize(
    "password",
    [
        "demo-plankeeper", "Wattlebird2026", "Wattlebird2026!!", "wattlebird plans", "RobinHale2026!",
        "hale.robin.hale", "r0b1n-hale-1987", "Oakfield Oakfield", "demo.oakfield.2026",
    ],
)  # fmt: skip
def test_a_password_of_known_names_is_rejected(password: str) -> None:
    names = ["Robin Hale", "Wattlebird Plans (demonstration)"]
    assert validate_password(password, "demo@oakfield.example", names) == "is too easy to guess"


def test_an_overlong_line_is_cut_before_its_characters_are_looked_up() -> None:
    started = time.process_time()
    assert single_line("x" * 50_000_000, 254) == "x" * 254
    assert time.process_time() - started < 1


def test_the_length_of_an_overlong_password_is_checked_first() -> None:
    started = time.process_time()
    assert validate_password("ﷺ" * 1_000_000, "a@example.com") == "must be 12 to 128 characters long"
    assert time.process_time() - started < 0.1


def test_a_password_has_12_to_128_characters() -> None:
    wrong = "must be 12 to 128 characters long"
    good = "violet umbrellas under nine green hats "
    assert validate_password(good[:11], "a@example.com") == wrong
    assert validate_password(good[:12], "a@example.com") is None
    assert validate_password((good * 4)[:128], "a@example.com") is None
    assert validate_password((good * 4)[:129], "a@example.com") == wrong


def test_a_password_may_be_typed_in_decomposed_characters() -> None:
    good = "violet umbrellas \u00e9\u00e8\u00fc under nine green hats"
    assert validate_password(unicodedata.normalize("NFD", good), "a@example.com") is None
    longest = "violet umbrellas under hats " + "\u1ec7\u1ef1\u1eab\u1eb7\u1ed9" * 20
    assert (len(longest), len(unicodedata.normalize("NFD", longest))) == (128, 328)
    assert validate_password(unicodedata.normalize("NFD", longest), "a@example.com") is None


@pytest.mark.parametrize("unit", ["x", "\ufdfa", "e\u0301", "\u0315\u0300", "\0", "\ud800"])
def test_long_texts_are_cut_or_rejected_before_they_are_processed(unit: str) -> None:
    text = unit * 250_000
    started = time.process_time()
    assert validate_password(text, "a@example.com") == "must be 12 to 128 characters long"
    assert len(single_line(text, 254)) <= 254
    assert time.process_time() - started < 0.02


@pytest.mark.parametrize("password", ["Ada.Okafor@Example.com", "xx ada.okafor@example.com", "okafor@example.com"])
def test_a_password_must_not_be_the_email(password: str) -> None:
    assert validate_password(password, "ada.okafor@example.com") == "must not be the email address"


def test_the_login_delay_doubles_from_the_third_failure_up_to_15_minutes() -> None:
    waits = [login_delay(failures) for failures in range(15)]
    assert waits == [0, 0, 0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900]
    assert login_delay(10**9) == MAX_DELAY


def test_an_account_on_all_networks_together_is_delayed_much_later_and_for_a_minute_at_most() -> None:
    waits = [login_delay(failures, ACCOUNT_FREE_FAILURES, ACCOUNT_MAX_DELAY) for failures in (2, 100, 101, 104, 10**9)]
    assert waits == [0, 0, 1, 8, 60]


def test_tokens_differ_and_form_tokens_do_not_reveal_them() -> None:
    tokens = {new_token() for _ in range(100)}
    assert len(tokens) == 100
    assert {len(each) for each in tokens} == {43}
    token = tokens.pop()
    assert csrf_token(token) == csrf_token(token) != csrf_token(tokens.pop())
    assert hash_token(token).hex() not in csrf_token(token)
    assert token not in csrf_token(token)


def test_a_recovery_code_is_accepted_in_any_formatting() -> None:
    codes = new_recovery_codes()
    assert len(set(codes)) == 10
    for code in codes:
        typed = (code, code.upper(), code.replace("-", ""), f" {code.replace('-', ' ')} ")
        assert {parse_recovery_code(each) for each in typed} == {code}


def test_external_text_is_reduced_to_a_single_line() -> None:
    assert single_line("a\0b\nc\u2028d\ud800e\x85f", 100) == "abcdef"
    assert single_line("abc", 2) == "ab"
