"""Answers kept for requests that are sent again."""
