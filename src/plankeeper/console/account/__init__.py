"""Signing in, and the account's own settings."""
