"""Account managers: the staff of a plan manager who are responsible for participants."""
