from celery import shared_task

from tidesched_web.metrics import services

fold = shared_task(services.fold, name="metrics.fold", ignore_result=True)
