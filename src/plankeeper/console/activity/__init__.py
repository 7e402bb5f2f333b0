"""Events: the list, the page of one, and undoing what they changed."""
