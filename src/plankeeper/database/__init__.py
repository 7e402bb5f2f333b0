"""PostgreSQL: the pool, transactions, row mapping, composed lists and migrations."""
