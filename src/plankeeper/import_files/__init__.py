"""Files that were checked in the console, until they are imported or an hour has passed."""
