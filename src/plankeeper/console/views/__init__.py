"""Saved views and settings of all lists."""
