"""The format of an API key, which scanners and the server check without a query."""

import hashlib
import string

import pytest

from plankeeper.access.api_keys.format import checksum, is_well_formed, new_key
from plankeeper.access.tokens import hash_token

BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase

# Bodies with their CRC-32 as gzip writes it, and that in base62 as computed by hand.
KNOWN_CHECKSUMS = [
    ("plk_00000000000000000000000000000000", 2_328_127_034, "2XYaC2"),
    ("plk_AbcdefghijklmnopqrstuvwxyZ012345", 3_178_518_504, "3T6jrU"),
    ("plk_00000000000000000000000000000042", 10_928_658, "00jr2g"),
]


def crc32(text: str) -> int:
    """CRC-32 (ISO 3309, reflected, polynomial 04C11DB7), bit by bit."""
    remainder = 0xFFFFFFFF
    for byte in text.encode():
        remainder ^= byte
        for _ in range(8):
            remainder = (remainder >> 1) ^ (0xEDB88320 if remainder & 1 else 0)
    return remainder ^ 0xFFFFFFFF


def decode_base62(digits: str) -> int:
    value = 0
    for digit in digits:
        value = value * 62 + BASE62.index(digit)
    return value


@pytest.mark.parametrize("body, crc, digits", KNOWN_CHECKSUMS)
def test_the_checksum_is_the_crc_32_in_six_digits_of_base62(body: str, crc: int, digits: str) -> None:
    assert crc32("123456789") == 0xCBF43926  # the check value of the standard
    assert (crc32(body), decode_base62(digits)) == (crc, crc)
    assert checksum(body) == digits
    assert is_well_formed(body + digits)


def test_a_new_key_is_a_prefix_32_random_characters_and_their_checksum() -> None:
    keys = [new_key() for _ in range(200)]
    assert len(set(keys)) == 200
    for key in keys:
        assert key.startswith("plk_")
        assert len(key) == 42
        assert set(key[4:]) <= set(BASE62)
        assert decode_base62(key[-6:]) == crc32(key[:-6])
        assert is_well_formed(key)
    # Every character comes up: 6,400 draws miss one of 62 once in 10^43.
    assert set("".join(key[4:36] for key in keys)) == set(BASE62)


def test_a_key_with_any_one_character_changed_is_rejected() -> None:
    key = new_key()
    for place, digit in enumerate(key):
        other = BASE62[(BASE62.index(digit) + 1) % 62] if digit in BASE62 else "-"
        assert not is_well_formed(key[:place] + other + key[place + 1 :])


def test_a_key_with_two_adjacent_characters_swapped_is_rejected() -> None:
    key = KNOWN_CHECKSUMS[1][0] + KNOWN_CHECKSUMS[1][2]
    for place in range(len(key) - 1):
        swapped = key[:place] + key[place + 1] + key[place] + key[place + 2 :]
        assert is_well_formed(swapped) == (swapped == key)


@pytest.mark.parametrize(
    "junk",
    [
        "",
        " ",
        "plk_",
        "plk_short",
        "plk_" + "0" * 38,
        "x" * 42,
        "Bearer",
        "ключ",
        "\0",
        "plk_" + "\ud7ff" * 38,
        KNOWN_CHECKSUMS[0][0] + "00" + KNOWN_CHECKSUMS[0][2],
        (KNOWN_CHECKSUMS[0][0] + KNOWN_CHECKSUMS[0][2]).upper(),
        KNOWN_CHECKSUMS[0][0] + KNOWN_CHECKSUMS[0][2] + " ",
        " " + KNOWN_CHECKSUMS[0][0] + KNOWN_CHECKSUMS[0][2],
        "pk_" + KNOWN_CHECKSUMS[0][0][4:] + "0000000",
    ],
)
def test_malformed_keys_are_rejected(junk: str) -> None:
    assert not is_well_formed(junk)


def test_a_key_that_is_too_short_is_rejected_even_with_a_valid_checksum() -> None:
    body = "plk_" + "0" * 31
    assert not is_well_formed(body + checksum(body))


def test_only_the_sha_256_of_a_key_is_stored() -> None:
    assert hash_token("abc") == bytes.fromhex("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
    key = new_key()
    assert hash_token(key) == hashlib.sha256(key.encode()).digest()
