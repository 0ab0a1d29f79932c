"""What all places answer over HTTP: the application, its errors, and the routes that a machine and a cluster share."""
