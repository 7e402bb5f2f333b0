"""Every error that the API answers and every warning that an invoice can carry, explained."""
