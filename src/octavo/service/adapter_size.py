"""How large the files of adapters may be."""

from octavo.errors import AdapterRefused


def check_size(size: int | None, max_size: int) -> None:
    """Both in bytes; None is not known. Raises AdapterRefused."""
    if size is None:
        raise AdapterRefused("The size of the adapter's file is not known before it is downloaded.", param="path")
    if size > max_size:
        message = f"The adapter's file has {size} bytes; this server takes at most {max_size}."
        raise AdapterRefused(message, param="path")
