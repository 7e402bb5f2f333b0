"""The audit log and the feed: every write records its event in its own transaction."""
