"""Accounts: who signs in to the console, with which role for whom."""
