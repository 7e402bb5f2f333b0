"""The office's own fees: one invoice for each participant and month, and what the office takes of them."""
