"""How an office keeps its service standard, month by month."""
