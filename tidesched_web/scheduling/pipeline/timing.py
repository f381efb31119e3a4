"""A request sent right after a check of the lease may take effect ``REQUEST_SECONDS`` later: checks ask for that."""

from tidesched_web.clusters.kubernetes import installation_lease
from tidesched_web.common.progress import HANG_SECONDS

LEASE_SECONDS = installation_lease.LEASE_SECONDS
monotonic = installation_lease.monotonic
RENEW_SECONDS = LEASE_SECONDS / 5
SKEW_SECONDS = min(1.0, LEASE_SECONDS / 10)
REQUEST_SECONDS = min(5.0, LEASE_SECONDS / 3)
# A cluster's lease is not renewed while its sessions stand still for longer: it has run out by the time that a hung
# process is replaced (`common.progress.HANG_SECONDS`).
STANDING_SECONDS = max(HANG_SECONDS - LEASE_SECONDS, HANG_SECONDS / 2)
# Without Celery, PostgreSQL rows alone are swept this often.
SWEEP_SECONDS = min(5.0, LEASE_SECONDS / 3)
