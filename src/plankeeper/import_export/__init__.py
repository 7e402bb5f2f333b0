"""Import and export: whole files in and out, through the same stores, checks and events as the API."""
