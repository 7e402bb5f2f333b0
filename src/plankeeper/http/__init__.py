"""The HTTP layer: routing, authentication, parsing, errors and responses of all packages."""
