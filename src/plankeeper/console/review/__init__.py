"""The review queue: one invoice after the other, for the people who decide about them."""
