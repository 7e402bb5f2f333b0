"""The contacts on a participant's team, and their permissions."""
