"""Plan managers, the organisations that use Plankeeper. Each is a tenant: all other data belongs to one."""
