"""Totals that are sums of rows: each write appends a row with a difference, so writers never wait for each other."""

from typing import LiteralString


def compose_compaction(table: LiteralString, *columns: LiteralString) -> LiteralString:
    """A statement that sums up totals that consist of many rows, at most `$1` of them, and returns the rows removed.

    There is a total for each value of `columns`, besides the plan manager.
    """
    names: tuple[LiteralString, ...] = ("plan_manager_id", *columns)
    key: LiteralString = ", ".join(names)
    is_same: LiteralString = " and ".join(["counts." + name + " = crowded." + name for name in names])
    removed: LiteralString = ", ".join(["counts." + name for name in names])
    return f"""
    with crowded as (
        -- one task compacts the counts of all plan managers
        select {key} from {table} group by {key} having count(*) > 50 limit $1
    ), removed as (
        delete from {table} counts using crowded where {is_same} returning {removed}, counts.amount
    ), compacted as (
        insert into {table} ({key}, amount) select {key}, sum(amount) from removed group by {key}
    )
    select count(*) from removed
"""
