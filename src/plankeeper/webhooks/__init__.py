"""Webhooks: signed messages about events, sent to the endpoints of a plan manager."""
