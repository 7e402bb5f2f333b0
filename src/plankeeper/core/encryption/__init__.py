"""Encryption of stored secrets, under the keys of a file."""
