"""JSON as the API writes it: exact numbers, and checked string types such as Email as plain strings."""

import msgspec

_encoder = msgspec.json.Encoder(decimal_format="number", enc_hook=str)

encode = _encoder.encode
encode_lines = _encoder.encode_lines


def to_json(value: object) -> str:
    return encode(value).decode()
