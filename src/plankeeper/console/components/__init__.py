"""What several areas show: forms, pickers, charts, labels and the texts of events."""
