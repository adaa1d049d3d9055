"""One image through one model: the engine shared by Python, command line, API and page, and its result."""
