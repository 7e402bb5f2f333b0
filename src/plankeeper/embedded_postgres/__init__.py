"""A PostgreSQL server that Plankeeper starts and stops itself."""
