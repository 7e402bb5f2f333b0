"""Invoices: the list, the page of one, and what its warnings compare."""
