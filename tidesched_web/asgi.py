"""The web process's application: `uvicorn tidesched_web.asgi:application`."""

import os
import sys

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tidesched_web.settings")
# Only this process serves requests from many threads at once, so only here a pool of connections pays.
os.environ.setdefault("DATABASE_POOL", "16")

from django.core.asgi import get_asgi_application

# With the usual 5 ms the event loop would wait that long behind each thread that works.
sys.setswitchinterval(0.001)
_django = get_asgi_application()

from tidesched_web.front.application import Front  # noqa: E402  # reads the settings

application = Front(_django)
