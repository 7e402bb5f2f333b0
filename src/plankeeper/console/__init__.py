"""The settings console: pages for people, on the same stores as the API."""
