"""Endpoints without an API key: documentation, front page, health checks."""
