"""``python -m tests.cluster.supervised FOLDER``: a session worker under the real supervisor, for the tests of hangs."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from tidesched_web.embedded.console_output import Output
from tidesched_web.embedded.data_folder import DataFolder
from tidesched_web.embedded.processes import APPLICATIONS, ProcessSpec
from tidesched_web.embedded.supervisor import Supervisor
from tidesched_web.env import Runtime

CELERY = [sys.executable, "-m", "celery", "--quiet", "--skip-checks", "--app", "tidesched_web.celery"]
WORKER = [*CELERY, "worker", "--loglevel", "INFO", "--without-gossip", "--without-mingle"]
ROLES = {
    "sessions": [*WORKER, "--pool", "threads", "--concurrency", "4", "--queues", "sessions"],
    "work": [*WORKER, "--pool", "prefork", "--concurrency", "1", "--queues", "work", "--prefetch-multiplier", "1"],
}


async def main(folder: Path, role: str) -> None:
    data = DataFolder(folder)
    data.open()
    supervisor = Supervisor(data, Output(folder / "all.log"), Runtime(redis_url=os.environ["REDIS_URL"]))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, supervisor.request_stop)
    environment = os.environ | {"TIDESCHED_PROGRESS_DIR": str(supervisor.hangs.folder), "TIDESCHED_ROLE": role}
    argv = [*ROLES[role], "--hostname", f"{role}@%h"]
    supervisor.keep(ProcessSpec(name=role, argv=argv, env=environment, stage=APPLICATIONS, watched=True))
    await supervisor.stopping.wait()
    await supervisor.stop()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
