"""``python -m scheduler_core``: decide over a snapshot, or play a trace through the scheduler."""

import sys

from scheduler_core.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
