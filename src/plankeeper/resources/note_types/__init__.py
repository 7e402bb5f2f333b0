"""Note types and their colours."""
