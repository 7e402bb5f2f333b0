"""Documents of invoices, and providers' statements: rows, objects in the storage, images of pages."""
