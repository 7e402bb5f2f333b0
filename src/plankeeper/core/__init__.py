"""What all other code is written in: contexts, errors, field types, JSON, lists, settings and logs."""
