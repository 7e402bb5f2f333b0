"""Signatures as the official library sees them, and the schedule of attempts."""

import base64
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook, WebhookVerificationError
from uuid_utils.compat import uuid7

from plankeeper.core.ids import uuid7_lower_bound
from plankeeper.webhooks.messages import SECRET_PREFIX, build_headers, new_secret, validate_secret
from plankeeper.webhooks.retry_policy import MAX_JITTER, RETRY_DELAYS, retry_delay

BODY = b'{"type":"participant.created","data":{"name":"Zo\xc3\xab"}}'
SECRET, OLD_SECRET = new_secret(), new_secret()
DAY = 24 * 3600


def verifies(secret: str, headers: dict[str, str], body: bytes = BODY) -> bool:
    try:
        Webhook(secret).verify(body, headers)
    except WebhookVerificationError:
        return False
    return True


def signed_headers(*secrets: str, seconds_ago: float = 0, body: bytes = BODY) -> dict[str, str]:
    """The headers of a message that was sent `late` seconds ago."""
    return dict(build_headers("msg_1", int(datetime.now(UTC).timestamp() - seconds_ago), body, list(secrets)))


@given(st.binary(min_size=24, max_size=64), st.text().map(str.encode))
def test_the_official_library_verifies_a_signature_of_any_secret_over_any_text(key: bytes, body: bytes) -> None:
    secret = SECRET_PREFIX + base64.b64encode(key).decode()
    assert validate_secret(secret) is None
    Webhook(secret).verify(body, signed_headers(secret, body=body), json_parse=False)


def test_a_changed_byte_anywhere_in_the_body_fails_verification() -> None:
    headers = signed_headers(SECRET)
    assert verifies(SECRET, headers)
    changed = [BODY[:at] + bytes([BODY[at] ^ 1]) + BODY[at + 1 :] for at in range(len(BODY))]
    assert not any(verifies(SECRET, headers, each) for each in [*changed, BODY + b" ", BODY[:-1]])


@pytest.mark.parametrize("name", ["webhook-id", "webhook-timestamp", "webhook-signature"])
def test_a_changed_header_fails_verification(name: str) -> None:
    headers = signed_headers(SECRET)
    other = str(int(headers[name]) + 1) if name == "webhook-timestamp" else headers[name][:-2] + "xx"
    assert not verifies(SECRET, headers | {name: other})


@pytest.mark.parametrize("seconds_ago, accepted", [(0, True), (240, True), (360, False), (DAY, False), (-360, False)])
def test_a_timestamp_outside_the_tolerance_fails_verification(seconds_ago: float, accepted: bool) -> None:
    assert verifies(SECRET, signed_headers(SECRET, seconds_ago=seconds_ago)) == accepted


def test_both_secrets_verify_during_rotation_and_no_other() -> None:
    headers = signed_headers(SECRET, OLD_SECRET)
    assert [verifies(each, headers) for each in (SECRET, OLD_SECRET, new_secret())] == [True, True, False]
    assert [verifies(each, signed_headers(SECRET)) for each in (SECRET, OLD_SECRET)] == [True, False]


def test_a_secret_is_32_random_bytes() -> None:
    made = {new_secret() for _ in range(100)}
    assert len(made) == 100
    assert {len(base64.b64decode(each.removeprefix(SECRET_PREFIX))) for each in made} == {32}
    assert all(each.startswith("whsec_") and validate_secret(each) is None for each in made)


@pytest.mark.parametrize(
    "secret, is_valid",
    [
        ("", False),
        ("whsec_", False),
        (SECRET.removeprefix("whsec_"), False),
        (SECRET[:-1], False),
        (SECRET + "é", False),
        ("whsec_" + "A" * 28, False),  # 21 bytes
        ("whsec_" + "A" * 32, True),  # 24
        ("whsec_" + "A" * 84, True),  # 63
        ("whsec_" + "A" * 88, False),  # 66
    ],
    ids=range(9),
)
def test_the_format_of_a_secret_is_validated(secret: str, is_valid: bool) -> None:
    assert (validate_secret(secret) is None) == is_valid


def test_attempts_follow_the_published_schedule() -> None:
    hour = 3600
    seconds = [0, 5, 300, 1800, 2 * hour, 5 * hour, 10 * hour, 14 * hour, 20 * hour, 24 * hour]
    assert [retry_delay(made, 0) for made in range(11)] == [*(timedelta(seconds=each) for each in seconds), None]


@given(st.integers(0, 9), st.floats(0, 1))
def test_jitter_delays_an_attempt_by_at_most_a_tenth(attempt_count: int, random_value: float) -> None:
    wait = retry_delay(attempt_count, random_value)
    assert wait is not None
    assert RETRY_DELAYS[attempt_count] <= wait <= RETRY_DELAYS[attempt_count] * (1 + MAX_JITTER)
    assert MAX_JITTER == 0.1
    assert retry_delay(attempt_count, 1) == RETRY_DELAYS[attempt_count] * (1 + MAX_JITTER)


@pytest.mark.parametrize("retry_after, seconds", [(None, 300), (0.0, 300), (299.0, 300), (301.0, 301), (1e9, DAY)])
def test_retry_after_can_lengthen_a_delay_up_to_a_day_but_not_shorten_it(
    retry_after: float | None, seconds: int
) -> None:
    assert retry_delay(2, 0, retry_after) == timedelta(seconds=seconds)


def test_retry_after_does_not_add_attempts() -> None:
    assert retry_delay(10, 0, 60.0) is None
    assert retry_delay(11, 0, 60.0) is None


def test_the_uuid7_lower_bound_of_a_time_precedes_later_ids() -> None:
    moment = datetime.now(UTC)
    ident = uuid7()
    assert uuid7_lower_bound(moment - timedelta(seconds=1)) < uuid7_lower_bound(moment) < ident
    assert ident < uuid7_lower_bound(moment + timedelta(seconds=5))
    assert uuid7_lower_bound(datetime(1960, 1, 1, tzinfo=UTC)).int == 0
