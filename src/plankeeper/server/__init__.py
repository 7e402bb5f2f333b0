"""The processes of a server, and what they consist of."""
