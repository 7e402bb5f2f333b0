"""Personal data of a participant and its team: export, erasure, and legal holds that prevent an erasure."""
