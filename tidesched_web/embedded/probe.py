"""``python -m tidesched_web.embedded.probe ROLE``: does the process of this container move? Exit status 0 or 1.

With ``--end`` a process that hangs is ended with signal 9, for a container whose restart waits for its end. Either way
its successor finds a note of it, where the folder outlives the process.
"""

import argparse
import os
import signal
import sys
import time
from pathlib import Path

from tidesched_web.common import incidents
from tidesched_web.common.progress import Report, file_of, read, why_replaced


def main(arguments: list[str] | None = None) -> int:
    """Look at the file of one role."""
    parser = argparse.ArgumentParser(prog="python -m tidesched_web.embedded.probe", description=__doc__)
    parser.add_argument("role")
    parser.add_argument("--end", action="store_true", help="end the process where it hangs")
    options = parser.parse_args(arguments)
    path = file_of(options.role)
    if path is None:
        sys.stderr.write("TIDESCHED_PROGRESS_DIR is not set\n")
        return 2
    report = read(path)
    if report is None or not _is_of_a_living_process(report):
        sys.stderr.write(f"{options.role} has not begun\n")
        return 1
    standing = why_replaced(report, time.monotonic())
    if standing is None:
        return 0
    incidents.write(incidents.place() or path.parent, report, standing, ended_by="probe")
    if options.end:
        os.kill(report.pid, signal.SIGKILL)
        path.unlink(missing_ok=True)
    sys.stderr.write(f"{options.role} stands still: {standing.activity} {standing.at}, {standing.seconds:.0f} s\n")
    return 1


def _is_of_a_living_process(report: Report) -> bool:
    """Not of a predecessor: in a container its number is the same."""
    try:
        ticks = Path(f"/proc/{report.pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return False
    return int(ticks) / os.sysconf("SC_CLK_TCK") <= time.clock_gettime(time.CLOCK_BOOTTIME) - (
        time.monotonic() - report.written
    )


if __name__ == "__main__":
    sys.exit(main())
