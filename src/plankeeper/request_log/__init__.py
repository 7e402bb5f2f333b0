"""The log of API requests: what a plan manager's keys asked lately, and what they were answered."""
