"""Many visitors on one machine: the engine with its jobs, worker pools, limits and caches, for page, API and server."""
