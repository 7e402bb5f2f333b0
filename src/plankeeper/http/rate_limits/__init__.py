"""Rate limits across all servers: requests per API key, and invalid credentials per client address."""
