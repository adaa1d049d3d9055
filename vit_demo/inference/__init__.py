"""One image through one model: the engine that every way in shares, and its result."""
