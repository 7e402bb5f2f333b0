"""Runs of statements: all plans of a month, who gets the statements, the print file, and what failed."""
