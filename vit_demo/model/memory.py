"""The memory that tensors take."""

from collections.abc import Iterable

from torch import Tensor


def num_bytes(tensors: Iterable[Tensor]) -> int:
    """Bytes of the memory that some tensors keep alive.

    A view keeps the whole storage that it is a part of, so whole storages count, each once.
    """
    storages = (tensor.untyped_storage() for tensor in tensors)
    return sum({(storage.device, storage.data_ptr()): storage.nbytes() for storage in storages}.values())
