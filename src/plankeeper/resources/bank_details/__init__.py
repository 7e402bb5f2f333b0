"""The bank accounts of payees, and changes of them that a second person approves."""
