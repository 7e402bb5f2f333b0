"""Imports from files: upload, columns, rows, runs."""
