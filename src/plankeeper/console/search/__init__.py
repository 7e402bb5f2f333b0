"""The search in all records."""
