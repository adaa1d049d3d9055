"""Training of small networks of digits, and how often any model is right about labelled pictures."""
