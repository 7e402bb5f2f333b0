"""Webhooks: events sent, signed, to addresses that a plan manager names."""
