"""Notes on participants, providers and invoices: their section on the pages of records, and their forms."""
