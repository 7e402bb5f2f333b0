"""Saved views of lists, and the columns that people have chosen."""
