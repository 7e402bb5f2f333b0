"""Imports and exports: reading, matching, importing and undoing files, and the results of each row."""
