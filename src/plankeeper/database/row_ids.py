"""Conditions on the ids of rows.

PostgreSQL plans a statement once for all values. For `id = any ($2)` it expects ten ids, and may scan the index of
another column through all rows of a plan manager, because most plan managers have few. From a sub-select whose limit is
an expression it expects a single id, for which a look-up in the primary key is always the cheapest plan.
"""

from typing import LiteralString


def in_array(column: LiteralString, array: LiteralString) -> LiteralString:
    """Whether a column's value is in an array, such as `$2::uuid[]`."""
    return f"{column} in (select unnest({array}) limit cardinality({array}))"


HAS_ID: LiteralString = in_array("id", "$2::uuid[]")  # whether the row has one of the ids `$2`


def records_of(table: LiteralString) -> LiteralString:
    """The JSON list `$2` as rows of a table, to join with the rows that have their ids.

    PostgreSQL expects a hundred rows of it, and a tenth of them for each limit.
    """
    return f"""(
        select * from (
            select * from json_populate_recordset(null::{table}, $2) limit json_array_length($2)
        ) record limit json_array_length($2)
    )"""
