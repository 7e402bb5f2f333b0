"""Participants: the list, the pages of one, their team and personal data."""
