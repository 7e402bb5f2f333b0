"""Forms whose session ended before they were sent."""
