"""TLS before what listens: a service's certificate, the way in over it, and uvicorn behind that."""
