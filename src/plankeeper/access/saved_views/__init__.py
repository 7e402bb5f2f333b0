"""Views of lists that people have saved, and the columns that they have chosen."""
