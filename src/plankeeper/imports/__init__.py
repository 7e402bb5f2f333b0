"""Imports of the console: what was imported, by whom, with which result for each row."""
