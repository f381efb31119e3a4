"""The web process's application: `uvicorn tidesched_web.asgi:application`."""

import gc
import os
import sys

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tidesched_web.settings")
# Only this process serves requests from many threads at once, so only here a pool of connections pays.
os.environ.setdefault("DATABASE_POOL", "16")

from django.core.asgi import get_asgi_application
from django.urls import get_resolver

# With the usual 5 ms the event loop would wait that long behind each thread that works.
sys.setswitchinterval(0.001)
_django = get_asgi_application()

from tidesched_web.front.application import Front  # noqa: E402  # reads the settings

application = Front(_django)

# All pages' code is loaded before the first of them is asked for. It stays as long as the process: the collector of
# garbage, which else walks through all of it again and again, leaves it out, and looks once in some answers.
_ = get_resolver().url_patterns
gc.collect()
gc.freeze()
gc.set_threshold(10_000, 20, 20)
