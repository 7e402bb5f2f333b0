"""The people at a plan manager who look after participants."""
