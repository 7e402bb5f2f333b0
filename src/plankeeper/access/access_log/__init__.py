"""The access log: who viewed, listed or exported which participant or invoice, and when."""
