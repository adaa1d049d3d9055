"""From untrusted pixels to tensors: read a picture safely, tidy up a sketch, prepare the input of a model."""

from vit_demo.images.digits import to_mnist
from vit_demo.images.limits import MAX_BYTES, MAX_PIXELS, MAX_SIDE
from vit_demo.images.preprocess import MNIST_MEAN, MNIST_STD, Geometry, preprocess, seen, to_tensor_digit
from vit_demo.images.reading import ImageSource, decode_drawing, decode_image, read_image

__all__ = [
    "MAX_BYTES",
    "MAX_PIXELS",
    "MAX_SIDE",
    "MNIST_MEAN",
    "MNIST_STD",
    "Geometry",
    "ImageSource",
    "decode_drawing",
    "decode_image",
    "preprocess",
    "read_image",
    "seen",
    "to_mnist",
    "to_tensor_digit",
]
