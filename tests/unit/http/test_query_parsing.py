"""Query strings that are sent again and again are parsed once."""

import pytest

from plankeeper.core.errors import ValidationError
from plankeeper.http.parsing import MAX_REMEMBERED_QUERY, parse_query
from plankeeper.resources.participants.schemas import ParticipantListQuery
from plankeeper.resources.providers.schemas import ProviderListQuery


def test_a_short_query_is_parsed_once_for_each_list() -> None:
    parsed = parse_query(ParticipantListQuery, b"limit=5&status=Active")
    assert parsed == ParticipantListQuery(limit=5, status=["Active"])
    assert parse_query(ParticipantListQuery, b"limit=5&status=Active") is parsed
    assert parse_query(ProviderListQuery, b"limit=5") == ProviderListQuery(limit=5)
    assert parse_query(ParticipantListQuery, b"limit=5") == ParticipantListQuery(limit=5)


def test_a_parsed_query_cannot_be_changed() -> None:
    parsed = parse_query(ParticipantListQuery, b"limit=5")
    with pytest.raises(AttributeError, match="immutable"):
        parsed.limit = 6  # type: ignore[union-attr, misc]


def test_a_long_query_is_parsed_each_time() -> None:
    query = b"q=" + b"a" * MAX_REMEMBERED_QUERY
    parsed = parse_query(ParticipantListQuery, query)
    assert parsed == parse_query(ParticipantListQuery, query)
    assert parsed is not parse_query(ParticipantListQuery, query)


def test_an_invalid_query_is_rejected_each_time() -> None:
    for _ in range(2):
        with pytest.raises(ValidationError) as error:
            parse_query(ParticipantListQuery, b"limit=0&unknown=1")
        assert [each.field for each in error.value.errors] == ["unknown", "limit"]
