"""Plans of all participants: those that end, and the budgets that need a look."""
