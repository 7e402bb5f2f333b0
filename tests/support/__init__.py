"""What the tests share: a real cluster, a real server, a client that checks every answer against `openapi.json`."""
