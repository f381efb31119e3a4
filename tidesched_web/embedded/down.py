"""`make down`: stop what runs on the data folder, from another terminal."""

import os
import signal
import time

from tidesched_web import env
from tidesched_web.embedded import identity
from tidesched_web.embedded.data_folder import DataFolder, end_processes
from tidesched_web.embedded.errors import StartError

_PATIENCE_SECONDS = 20.0


def down() -> None:
    """Stop the supervisor of the data folder and wait until it is gone; nothing running is fine too. Raises
    StartError: where it is still there after 20 s."""
    supervisor = DataFolder(env.data_dir()).holder
    if not identity.is_same(supervisor.pid, supervisor.started):
        end_processes(env.runtime().processes)
        print(f"TideSched does not run on {env.data_dir()}")  # noqa: T201 - a command line prints
        return
    os.kill(supervisor.pid, signal.SIGTERM)
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while identity.is_same(supervisor.pid, supervisor.started):
        if time.monotonic() > deadline:
            raise StartError(
                f"process {supervisor.pid} has not stopped in {_PATIENCE_SECONDS:.0f} s",
                f"end it with `kill -9 {supervisor.pid}`; the next start recovers",
            )
        time.sleep(0.1)
    print("TideSched has stopped")  # noqa: T201 - a command line prints
