"""Training and evaluation of the bundled presets, from the command line: data, recipes, objectives and the loop."""
