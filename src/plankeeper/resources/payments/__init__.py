"""Payment runs: what payees get of the agency's money, as a file for the bank, and the money that the office holds."""
