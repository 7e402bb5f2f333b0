"""Sample data in the import format. It is fictitious, and the same for the same seed and day."""

from plankeeper.cli.sample_data.dataset import DemoPlanManager, plan_managers, records
from plankeeper.cli.sample_data.support_items import generate_support_items

__all__ = ["DemoPlanManager", "generate_support_items", "plan_managers", "records"]
