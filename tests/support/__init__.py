"""Shared by the tests: a real cluster, a real server, a client that checks every response against `openapi.json`."""
