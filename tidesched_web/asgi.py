"""The web process's application: `uvicorn tidesched_web.asgi:application`."""

import gc
import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tidesched_web.settings")
# Only this process serves requests from many threads at once, so only here a pool of connections pays.
os.environ.setdefault("DATABASE_POOL", "16")

import django

django.setup(set_prefix=False)

from django.urls import get_resolver  # noqa: E402  # reads the settings, as the next two do

from tidesched_web.front.handler import OneThreadHandler  # noqa: E402
from tidesched_web.front.limiter import Limiter  # noqa: E402

application = Limiter(OneThreadHandler())

# All pages' code is loaded before the first of them is asked for. It stays as long as the process: the collector of
# garbage, which else walks through all of it again and again, leaves it out, and looks once in some answers.
_ = get_resolver().url_patterns
gc.collect()
gc.freeze()
gc.set_threshold(10_000, 20, 20)
