"""The settings of a plan manager, the trash, and the access log."""
