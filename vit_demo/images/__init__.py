"""Pictures of any origin as input tensors: decoding within limits, then preprocessing of digits and photos."""

from vit_demo.images.decoder import MAX_PIXELS, check_size
from vit_demo.images.digit_preprocess import MNIST_MEAN, MNIST_STD, digit_to_tensor, place_digit, to_mnist
from vit_demo.images.geometry import Geometry, model_view
from vit_demo.images.ink import is_drawing
from vit_demo.images.photo_preprocess import check_photo, is_plain, preprocess
from vit_demo.images.reading import ImageSource, decode_drawing, decode_frame, decode_image, read_image, stored_size
from vit_demo.images.rgb import MAX_SIDE

__all__ = [
    "MAX_PIXELS",
    "MAX_SIDE",
    "MNIST_MEAN",
    "MNIST_STD",
    "Geometry",
    "ImageSource",
    "check_photo",
    "check_size",
    "decode_drawing",
    "decode_frame",
    "decode_image",
    "digit_to_tensor",
    "is_drawing",
    "is_plain",
    "model_view",
    "place_digit",
    "preprocess",
    "read_image",
    "stored_size",
    "to_mnist",
]
