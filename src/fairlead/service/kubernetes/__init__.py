"""The service of a cluster: what can be asked over HTTP of a scheduler that works on a Kubernetes cluster."""
