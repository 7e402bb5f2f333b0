"""Statements of participants: what was spent of a plan in a month, what waits and what is left."""
