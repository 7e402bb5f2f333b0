"""API keys: creation, rotation, revocation, and cached authentication."""
