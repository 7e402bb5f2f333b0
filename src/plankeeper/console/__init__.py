"""The console: the web interface for people, on the same stores and services as the API."""
