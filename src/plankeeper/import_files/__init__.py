"""Files that the console has checked. They are kept for an hour, or until their import."""
