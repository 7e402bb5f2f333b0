"""The watermark from samples of transaction ids."""

from datetime import UTC, datetime, timedelta

from plankeeper.database.client import Database
from plankeeper.database.commit_watermark import MARGIN, MAX_MARKS, CommitWatermark, NodeHistory
from plankeeper.database.server import TransactionIds

START = datetime(2026, 1, 1, tzinfo=UTC)


def moment(second: float) -> datetime:
    return START + timedelta(seconds=second)


def add(history: NodeHistory, second: float, oldest_open: int, next_id: int) -> datetime | None:
    return history.add(TransactionIds(1, moment(second), oldest_open, next_id))


def test_without_open_transactions_it_is_the_time_of_the_sample() -> None:
    history = NodeHistory()
    assert add(history, 1, 100, 100) == moment(1)
    assert add(history, 2, 100, 100) == moment(2)
    assert add(history, 3, 250, 250) == moment(3)


def test_an_open_transaction_holds_it_at_the_last_sample_before_its_id() -> None:
    history = NodeHistory()
    add(history, 1, 100, 100)
    assert add(history, 2, 110, 110) == moment(2)
    assert add(history, 3, 112, 140) == moment(2)  # 112 is open
    assert add(history, 4, 112, 150) == moment(2)
    assert add(history, 5, 145, 160) == moment(3)  # 112 has ended; 145, which is open, came after the sample of 3
    assert add(history, 6, 170, 170) == moment(6)


def test_it_is_unknown_while_a_transaction_is_open_that_is_older_than_the_first_sample() -> None:
    history = NodeHistory()
    assert add(history, 1, 90, 100) is None
    assert add(history, 2, 90, 120) is None
    assert add(history, 3, 100, 130) == moment(1)


def test_a_server_that_takes_over_with_lower_ids() -> None:
    history = NodeHistory()
    add(history, 1, 100, 100)
    add(history, 2, 101, 200)
    add(history, 3, 101, 300)
    assert add(history, 4, 150, 160) == moment(1)  # the samples of 2 and 3 say nothing about the new 200 and 300
    assert add(history, 5, 210, 210) == moment(5)


def test_a_transaction_that_stays_open_for_hours_takes_bounded_memory() -> None:
    history = NodeHistory()
    add(history, 0, 1, 1)
    for second in range(1, 4 * MAX_MARKS):
        assert add(history, second, 1, second * 2) == moment(0)
    assert len(history._marks) <= MAX_MARKS  # noqa: SLF001
    last = 4 * MAX_MARKS
    found = add(history, last, last, last * 2)  # the id `last` was given out half-way
    assert found
    assert moment(last / 2 - 16) <= found <= moment(last / 2)


def test_all_nodes_count() -> None:
    watermark = CommitWatermark(Database(""))
    watermark.add([TransactionIds(1, moment(1), 100, 100), TransactionIds(2, moment(1), 5, 7)])
    assert watermark.value is None
    watermark.add([TransactionIds(1, moment(2), 100, 100), TransactionIds(2, moment(2), 7, 9)])
    assert watermark.value == moment(1) - MARGIN
    watermark.add([TransactionIds(1, moment(3), 100, 120), TransactionIds(2, moment(3), 9, 9)])
    assert watermark.value == moment(2) - MARGIN
    watermark.add([])  # a node does not respond
    assert watermark.value == moment(2) - MARGIN
    watermark.add(
        [TransactionIds(3, moment(4), 1, 1), TransactionIds(1, moment(4), 120, 120)]
    )  # another node instead of 2
    assert watermark.value == moment(4) - MARGIN
