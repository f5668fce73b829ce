"""What runs in one process: the API, a worker, both beside a private PostgreSQL."""
