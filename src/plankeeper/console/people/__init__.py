"""People with an account, and account managers."""
