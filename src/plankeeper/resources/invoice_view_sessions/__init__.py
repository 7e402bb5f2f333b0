"""Records of a user viewing an invoice."""
