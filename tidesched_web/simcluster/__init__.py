"""The simulated cluster: a server of its own that speaks the part of the Kubernetes API that is used."""
