"""What the page offers: models, examples, documentation of the methods, networks to start from."""
