"""Everything HTTP that no slice should think about."""
