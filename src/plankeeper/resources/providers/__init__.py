"""Providers of services to participants, who issue invoices."""
