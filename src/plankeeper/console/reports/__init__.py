"""Reports on the office's work."""
