"""Notes on participants, providers and invoices."""
