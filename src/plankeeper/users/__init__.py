"""Users of a plan manager: account managers and team members are users, one for each email."""
