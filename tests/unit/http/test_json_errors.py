"""The explanations of invalid JSON. They come from the texts of msgspec, which another version could change."""

import pytest

from plankeeper.core.errors import DomainError
from plankeeper.core.json import parse_json_object


@pytest.mark.parametrize(
    "body, detail",
    [
        (b'{"a": NaN}', "invalid character at line 1, column 7"),
        (b'{"a": 1,}', "trailing comma in object at line 1, column 9"),
        (b'{"a": 1,\n "b": 2 "c": 3}', "expected ',' or '}' at line 2, column 9"),
        (b"{'a': 1}", "object keys must be strings at line 1, column 2"),
        (b'{"a": "\\x"}', "invalid escape character in string at line 1, column 10"),
        (b'{"a": 1} x', "trailing characters at line 1, column 11"),
        (b'{"a": "b', "it ends too early"),
        (b'{"a": "\xff"}', "it is not UTF-8"),
        (b'{"a": "\\ud800"}', "the escape \\ud800 is half of a surrogate pair"),
    ],
)
def test_an_error_names_the_place(body: bytes, detail: str) -> None:
    with pytest.raises(DomainError) as raised:
        parse_json_object(body)
    assert (raised.value.code, raised.value.detail) == ("invalid_json", f"Not valid JSON: {detail}.")
