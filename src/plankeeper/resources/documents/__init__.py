"""The documents of invoices: their rows, their objects in the storage, and images of their pages."""
