"""Users of a plan manager. Account managers and team members share one user for each email."""
