"""Bank details: their section on the pages of payees, proposals, and the decisions about them."""
