"""Small stand-ins for what a cluster has beside its API server: kubelets and controllers.

Each looks at one object at a time, as the real ones do, and says when it wants to look again.
"""
