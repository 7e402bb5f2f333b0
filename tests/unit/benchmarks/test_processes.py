"""The processor time that the benchmarks read from /proc."""

import os
import subprocess
import sys
import time

from benchmarks.processes import process_tree, processor_seconds

BUSY = "import time\nwhile time.process_time() < 0.3: pass"


def test_processor_time_includes_running_and_ended_processes() -> None:
    before = processor_seconds([os.getpid()])
    subprocess.run([sys.executable, "-c", BUSY], check=True)
    end = time.process_time() + 0.3
    while time.process_time() < end:
        pass
    # The time of what has ended is rounded down to hundredths of a second.
    assert processor_seconds([os.getpid()]) - before >= 0.56


def test_processes_that_have_ended_are_ignored() -> None:
    process = subprocess.Popen([sys.executable, "-c", "pass"])
    process.wait()
    assert process_tree(process.pid) == []
    assert processor_seconds([process.pid]) == 0
