"""What speaks for the predicted class rather than for the second one."""

import vit_demo

ex = vit_demo.explore("photos/cat.jpg", "photos-tiny")
(first, _), (second, _) = ex.top(2)
values = ex.heatmap("libra_fullgrad", first, against=second)
ex.overlay(values, on="photo").save("rather.png")
