"""Quotas: so many requests a minute for a key, so many bad credentials for an address, over all servers together."""
