"""API keys, logged requests and webhooks."""
