"""Participants: the people whose funding a plan manager manages."""
