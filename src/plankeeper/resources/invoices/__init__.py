"""What providers claim, line by line, and what was found wrong with it."""
