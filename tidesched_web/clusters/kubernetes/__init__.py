"""The Kubernetes adapter: one for real clusters and for the simulated one."""
