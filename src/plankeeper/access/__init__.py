"""Access to Plankeeper: plan managers, accounts, API keys, single sign-on, the access log and the request log."""
