"""What serves many visitors on one machine: the engine, jobs, worker pools, limits and caches."""
