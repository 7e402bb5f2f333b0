"""Invoices of providers with their lines, and the warnings about them."""
