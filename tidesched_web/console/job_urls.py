"""Addresses of jobs."""

from django.urls import path

from tidesched_web.console import jobs, status

urlpatterns = [
    path("status/", status.status, name="status"),
    path("jobs/", jobs.jobs, name="jobs"),
    path("jobs/<int:pk>/", jobs.job, name="job"),
    path("jobs/<int:pk>/cancel/", jobs.cancel, name="job_cancel"),
]
