"""Exit reasons of participants: categories and subcategories."""
