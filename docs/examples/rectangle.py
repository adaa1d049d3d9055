"""A whole photo in its own shape, on a rectangular grid of patches."""

import vit_demo

ex = vit_demo.explore("photos/cat.jpg", "photos-tiny", fit="keep")
print(ex.grid, ex.pixels.shape, ex.attention(query=(0, 0)).shape)
