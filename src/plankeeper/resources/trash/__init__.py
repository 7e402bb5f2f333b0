"""The trash: participants and providers that were deleted in the console, and can be restored for some days."""
