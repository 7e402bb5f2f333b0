"""PostgreSQL: the pool, transactions, migrations and the embedded cluster."""
