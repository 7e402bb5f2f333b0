"""Groups of a list's rows in SQL, with the number of rows and the sums of each.

Rows are added up by the column of the key first. The key itself, which can be a look-up of another record, is then
computed once for each value of the column instead of once for each row.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import LiteralString, NamedTuple

from msgspec import Struct

from plankeeper.database.lists.statements import Parameters, Rows


class GroupKey(NamedTuple):
    """The key of groups: an expression of `base`, whose value is that of `column` in each row.

    `{}` in the column stands for the value of `parameter`. `is_ordered`: the groups with the highest keys come first,
    such as those of the latest months; otherwise those with the highest first sum.
    """

    column: LiteralString
    key: LiteralString = "base"
    parameter: str = ""
    is_ordered: bool = False


class GroupSum(NamedTuple):
    """An amount that groups add up, in dollars. `{}` stands for the value of `parameter`."""

    amount: LiteralString
    parameter: str = ""


class ListGroup(Struct):
    """Rows with the same key. The group after `limit` ones has no key and contains the rows of all `groups` others.

    `key` is null for rows without one. `sums` has an amount for each GroupSum.
    """

    place: int  # from 1
    key: str | None
    groups: int
    count: int
    sums: list[Decimal]


def compose_groups(
    rows: Rows,
    key: GroupKey,
    sums: Mapping[str, GroupSum],
    values: Mapping[str, object],
    limit: int,
    parameters: Parameters,
) -> LiteralString:
    """The groups of rows. `values` are those of the parameters of the key and of the sums."""
    base = _insert(key.column, key.parameter, values, parameters)
    names: list[LiteralString] = [_SUMS[index] for index in range(len(sums))]
    amounts: list[LiteralString] = [
        "coalesce(sum(" + _insert(each.amount, each.parameter, values, parameters) + "), 0) as " + name
        for name, each in zip(names, sums.values(), strict=True)
    ]
    added: list[LiteralString] = ["sum(" + name + ") as " + name for name in names]
    totals: list[LiteralString] = ["sum(" + name + ")" for name in names]
    order: LiteralString = "key desc nulls last" if key.is_ordered else names[0] + " desc, count desc, key"
    most = parameters.add(limit)
    return f"""
    with counted as materialized (
        select {base} as base, count(*) as count, {", ".join(amounts)}
        from {rows.table}
        where {rows.conditions}
        group by 1
    ),
    grouped as materialized (
        select key, sum(count) as count, {", ".join(added)}
        from (select ({key.key})::text as key, {", ".join(["count", *names])} from counted) keyed
        group by key
    ),
    placed as (
        select key, {", ".join(["count", *names])}, row_number() over (order by {order}) as place from grouped
    )
    select least(place, {most} + 1)::int as place, case when place <= {most} then key end as key,
        count(*)::int as groups, sum(count)::bigint as count, array[{", ".join(totals)}] as sums
    from placed
    group by 1, 2
    order by 1
"""


_SUMS: tuple[LiteralString, ...] = ("sum_1", "sum_2", "sum_3", "sum_4", "sum_5")


def _insert(
    expression: LiteralString, parameter: str, values: Mapping[str, object], parameters: Parameters
) -> LiteralString:
    return expression.format(parameters.add(values[parameter])) if parameter else expression
