"""Synthetic demonstration data in the import format: the same for the same seed, and clearly made up."""

from plankeeper.demo.dataset import DemoPlanManager, plan_managers, records

__all__ = ["DemoPlanManager", "plan_managers", "records"]
