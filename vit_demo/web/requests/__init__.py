"""What the page sends: its fields are checked, its result is computed as a job, and packed."""
