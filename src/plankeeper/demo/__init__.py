"""Sample data in the import format. It is fictitious, and the same for the same seed and day."""

from plankeeper.demo.dataset import DemoPlanManager, plan_managers, records

__all__ = ["DemoPlanManager", "plan_managers", "records"]
