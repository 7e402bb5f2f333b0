"""Exit reasons of participants: categories and subcategories, which are imported."""
