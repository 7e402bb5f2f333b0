"""The limits that a process sets for itself before it reads a file, which can be large, damaged or hostile."""

import os
import resource

MAX_MEMORY = 768 * 1024**2  # bytes of address space
MAX_CPU_TIME = 10  # seconds
LOWEST_PRIORITY = 19


def set_limits(max_memory: int = MAX_MEMORY, max_cpu_time: int = MAX_CPU_TIME) -> None:
    """Limit this process, which hasn't read anything yet."""
    os.setpriority(os.PRIO_PROCESS, 0, LOWEST_PRIORITY)
    limits = {
        resource.RLIMIT_AS: max_memory,
        resource.RLIMIT_CPU: max_cpu_time,
        resource.RLIMIT_FSIZE: 0,
        resource.RLIMIT_CORE: 0,
    }
    for kind, limit in limits.items():
        resource.setrlimit(kind, (limit, limit))
