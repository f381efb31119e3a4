"""Many random sessions against the naive scheduler, one process: ``python -m tests.properties.long_run 0 10000``.

Prints what the sessions held, and the seed of each that is decided differently; exit status 1 then. Ctrl-C ends it
early with what there was so far.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback

from tests.properties.drawn import Coverage, compared, draw


def main(arguments: list[str] | None = None) -> int:
    """Seeds from the first to before the last."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int)
    given = parser.parse_args(arguments)
    coverage, wrong, began = Coverage(), [], time.monotonic()
    for seed in range(given.first, given.last):
        try:
            drawn = draw(seed)
            result, found = compared(drawn)
            coverage.note(drawn, result)
        except KeyboardInterrupt:
            break
        except Exception:  # noqa: BLE001 the run goes on, and the seed is told
            found = {"error": traceback.format_exc()}
        if found:
            wrong.append(seed)
            print(f"seed {seed}: {found['error'] if 'error' in found else ', '.join(sorted(found))}", flush=True)
        if (seed + 1 - given.first) % 500 == 0:
            print(f"{seed + 1}: {len(wrong)} differ, {time.monotonic() - began:.0f} s", flush=True)
    print(coverage.told())
    print(f"{len(wrong)} decided differently: {wrong[:50]}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
