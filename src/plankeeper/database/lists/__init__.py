"""Filtered and sorted lists: their declaration, their statements, and reading them."""
