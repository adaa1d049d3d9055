"""How the bundled presets are trained and evaluated: data, recipes, objectives and the loop around ``vit_demo``."""
