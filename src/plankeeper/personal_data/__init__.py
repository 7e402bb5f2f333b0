"""Personal data of a participant and its team: erasure, and legal holds that prevent it."""
