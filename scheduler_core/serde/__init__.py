"""Readers and writers: Kubernetes objects in, policy in, result document out."""
