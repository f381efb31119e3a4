"""``python -m tidesched_web.embedded.probe ROLE``: does the process of this container move? Exit status 0 or 1.

What it has forked and hangs is ended with signal 9; with ``--end`` so is the process itself, for a container whose
restart waits for its end.
"""

import argparse
import sys
import time

from tidesched_web import env
from tidesched_web.common import incidents
from tidesched_web.common.progress import folder, read
from tidesched_web.embedded import identity
from tidesched_web.embedded.hangs import hung


def main(arguments: list[str] | None = None) -> int:
    """Look at the files of one role."""
    parser = argparse.ArgumentParser(prog="python -m tidesched_web.embedded.probe", description=__doc__)
    parser.add_argument("role")
    parser.add_argument("--end", action="store_true", help="end the process where it hangs")
    options = parser.parse_args(arguments)
    place = folder()
    if place is None:
        sys.stderr.write("TIDESCHED_PROGRESS_DIR is not set\n")
        return 2
    standing = hung(place, options.role, time.monotonic())
    main_report = read(place / f"{options.role}.json")
    if main_report is None:
        sys.stderr.write(f"{options.role} has not begun\n")
        return 1
    status = 0
    for report, why in standing:
        is_main = report.pid == main_report.pid
        status |= is_main
        if options.end or not is_main:
            identity.kill_if_same(report.pid, report.started)
        incidents.write(env.text("REDIS_URL"), incidents.note_of(report, why, ended_by="probe"))
        sys.stderr.write(f"{report.role} stands still: {why.activity} {why.at}, {why.seconds:.0f} s\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
