"""Payment runs, returned payments, remittance advices and the reconciliation in the console."""
