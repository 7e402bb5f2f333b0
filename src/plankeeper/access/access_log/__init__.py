"""The record of who viewed, listed or exported which participant or invoice, and when."""
