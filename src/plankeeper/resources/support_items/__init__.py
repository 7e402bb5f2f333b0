"""The support catalogue: the agency's published items with their prices, which all plan managers share."""
