from importlib import import_module

from django.apps import AppConfig


class CommonConfig(AppConfig):
    name = "tidesched_web.common"

    def ready(self) -> None:
        # Tasks are declared for the current application; without this one they would look for a default broker.
        import_module("tidesched_web.celery")
