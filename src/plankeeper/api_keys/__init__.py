"""API keys: made, listed, revoked; recognised without a query."""
