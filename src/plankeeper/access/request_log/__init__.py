"""The request log: the latest API requests of a plan manager's keys, with the response status."""
