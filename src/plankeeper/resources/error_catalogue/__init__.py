"""The catalogue of all API errors and invoice warnings."""
