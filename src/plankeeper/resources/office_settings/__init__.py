"""The settings of a plan manager: the levels of warnings, and the approval of invoices."""
