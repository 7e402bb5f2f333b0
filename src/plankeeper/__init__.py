"""Plankeeper: a plan manager's system of record with an HTTP JSON API."""

__version__ = "0.1.0"
