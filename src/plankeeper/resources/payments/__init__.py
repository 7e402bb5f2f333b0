"""Payments: runs, bank files, remittance advices."""
