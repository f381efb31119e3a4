"""The web process's application: `uvicorn tidesched_web.asgi:application`."""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tidesched_web.settings")
# Only this process serves requests from many threads at once, so only here a pool of connections pays.
os.environ.setdefault("DATABASE_POOL", "16")

from django.core.asgi import get_asgi_application

application = get_asgi_application()
