"""The contacts on a participant's team, and what they may do."""
