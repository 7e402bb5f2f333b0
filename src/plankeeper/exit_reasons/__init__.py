"""Why participants leave: a small table of categories and subcategories, filled by import."""
