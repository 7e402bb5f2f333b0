"""Import and export of files, with the same stores, checks and events as the API."""
