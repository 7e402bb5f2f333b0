"""Who may use Plankeeper, and what they did: plan managers, accounts, API keys, single sign-on, and two logs."""
