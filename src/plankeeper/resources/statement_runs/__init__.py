"""The monthly runs of statements: which statements are made, who gets them, and what failed."""
