"""Who provides services to participants and sends invoices."""
