"""Claims: batches of lines that are claimed from the agency, their files and results."""
