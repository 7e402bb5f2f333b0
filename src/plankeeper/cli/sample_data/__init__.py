"""Sample data in the import format. It is fictitious, and the same for the same seed and day."""

from plankeeper.cli.sample_data.dataset import DemoPlanManager, plan_managers, records

__all__ = ["DemoPlanManager", "plan_managers", "records"]
