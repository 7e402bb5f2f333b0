"""Providers: the list, the page of one, create and edit."""
