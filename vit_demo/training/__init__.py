"""Training, from the command line only: data, augmentation, recipes and the loop."""
