"""Shared by all other packages: contexts, errors, field types, JSON, lists, settings and logs."""
