"""The choices on the page: models, examples, documentation of the methods, networks to start from."""
