"""Export and erasure of the data about one person, and legal holds."""
