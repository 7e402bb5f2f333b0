"""The console's search: participants, team members, providers and invoices by parts of names and numbers."""
