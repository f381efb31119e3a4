"""What the web process waits for at its database is bounded by the connection's own options."""

import json
import os
import subprocess
import sys

from tidesched_web.env import BASE_DIR

STORY = """
import json, django
django.setup()
from django.db import OperationalError, connection
with connection.cursor() as cursor:
    cursor.execute("SHOW statement_timeout")
    shown = cursor.fetchone()[0]
    cursor.execute("SET statement_timeout = '50ms'")
    try:
        cursor.execute("SELECT pg_sleep(60)")
    except OperationalError as error:
        ended = str(error)
pool = connection.pool
print(json.dumps({"shown": shown, "ended": ended, "timeout": pool.timeout, "max_waiting": pool.max_waiting}))
connection.close()
pool.close()
"""


def test_a_statement_and_the_wait_for_a_connection_end() -> None:
    environment = os.environ | {"DATABASE_POOL": "4", "DJANGO_SETTINGS_MODULE": "tidesched_web.settings"}
    done = subprocess.run(
        [sys.executable, "-c", STORY], cwd=BASE_DIR, env=environment, capture_output=True, text=True, check=True
    )
    story = json.loads(done.stdout)
    assert "canceling statement due to statement timeout" in story.pop("ended")
    assert story == {"shown": "30s", "timeout": 5, "max_waiting": 8}
