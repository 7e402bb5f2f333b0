"""Plans of participants: their components, funding periods and numbers."""
