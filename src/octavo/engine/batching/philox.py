"""A counter-based random generator: the same key and counter give the same number, whatever ran before.

Philox4x32-10 of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011).
"""

import numpy as np
from numpy.typing import NDArray

_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_WEYL = (np.uint64(0x9E3779B9), np.uint64(0xBB67AE85))
_ROUNDS = 10
_LOW = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)

Words = tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint64]]


def philox4x32(counter: Words, key: tuple[NDArray[np.uint64], NDArray[np.uint64]]) -> Words:
    """Four random 32-bit words per row. All arrays have shape (n,) and hold 32-bit values."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(_ROUNDS):
        product0 = c0 * _MULTIPLIERS[0]
        product1 = c2 * _MULTIPLIERS[1]
        c0, c1, c2, c3 = (product1 >> _32) ^ c1 ^ k0, product1 & _LOW, (product0 >> _32) ^ c3 ^ k1, product0 & _LOW
        k0 = (k0 + _WEYL[0]) & _LOW
        k1 = (k1 + _WEYL[1]) & _LOW
    return c0, c1, c2, c3


def uniform(seeds: NDArray[np.uint64], positions: NDArray[np.uint64], attempt: int = 0) -> NDArray[np.float64]:
    """Numbers in [0, 1) with 53 random bits, shape (n,): one per (64-bit seed, position in its stream) and attempt."""
    zero = np.zeros_like(positions)
    counter = (positions & _LOW, positions >> _32, zero + np.uint64(attempt), zero)
    words = philox4x32(counter, (seeds & _LOW, seeds >> _32))
    bits = ((words[0] << _32) | words[1]) >> np.uint64(11)
    return bits.astype(np.float64) * 2.0**-53
