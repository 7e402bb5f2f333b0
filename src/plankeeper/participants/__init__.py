"""The people whose funding a plan manager manages."""
