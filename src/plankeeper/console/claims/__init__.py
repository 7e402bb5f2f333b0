"""Claims: batches, their results and receipts, single lines, and what is to be recovered."""
