"""The organisations that everything belongs to: the tenants."""
