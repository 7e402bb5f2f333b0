"""What is counted of webhooks, for `/metrics`."""

from prometheus_client import Counter

ATTEMPTS = Counter("plankeeper_webhook_attempts", "Attempts to send a webhook.", ["outcome"])
