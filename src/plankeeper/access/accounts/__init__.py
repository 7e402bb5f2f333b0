"""Accounts of the console: sign-in, sessions, roles for plan managers, and invitations."""
