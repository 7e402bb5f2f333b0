"""The embedded PostgreSQL: a server that Plankeeper starts and stops itself."""
