"""The office's records, one package for each resource."""
