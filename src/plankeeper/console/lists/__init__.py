"""The list component: filters, sorting, pages, columns, saved views and downloads, declared once for each list."""
