"""Stored responses for requests with an idempotency key."""
