"""A vocabulary of millions of strings in little memory: their bytes side by side, found by hash, checked by bytes."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np

FIRST_SLOTS = 1 << 10
# multiplies a hash before its low bits choose a slot: hashes of like strings may differ in their high bits alone
SPREAD = np.uint64(0x9E3779B97F4A7C15)


class Names(Sequence[str]):
    """Distinct strings, numbered from 0 in the order in which they were added.

    A string takes its UTF-8 bytes, 16 bytes of place and hash, and 8 to 16 bytes of the table. Strings that come in the order in
    which they were added are found by comparing bytes alone.

    >>> names = Names()
    >>> names.add(["b", "a", "b"]).tolist(), names.find(["a", "c"]).tolist(), list(names)
    ([0, 1, 0], [1, -1], ['b', 'a'])
    """

    def __init__(self, names: Sequence[str] = ()) -> None:
        self.data = bytearray()
        self.ends = array("q", [0])
        self.hashes = array("q")
        self.table = np.full(FIRST_SLOTS, -1, dtype=np.int32)
        self.next = 0
        if len(names):
            self.add(names)

    def __len__(self) -> int:
        return len(self.hashes)

    def __getitem__(self, code):  # type: ignore[no-untyped-def]
        code = range(len(self))[code]
        return self.data[self.ends[code] : self.ends[code + 1]].decode("utf-8", "surrogatepass")

    def find(self, names: Sequence[str]) -> np.ndarray:
        """The number of each string, int64; -1 for one that was never added."""
        blob, sizes = _flat(names)
        codes = self._in_order(blob, sizes)
        return self._search(names, blob, sizes)[0] if codes is None else codes

    def add(self, names: Sequence[str]) -> np.ndarray:
        """The number of each string, int64; new ones are added."""
        blob, sizes = _flat(names)
        codes = self._in_order(blob, sizes)
        if codes is not None:
            return codes
        codes, hashes = self._search(names, blob, sizes)
        missing = np.flatnonzero(codes < 0)
        if missing.size:
            first = len(self)
            if missing.size == len(names) == len(set(names)):  # all of them are new: as they stand
                kept = missing
                codes += np.arange(first + 1, first + 1 + missing.size)
                self.data += blob
            else:
                new: dict[str, int] = {}
                own = np.array([new.setdefault(names[at], len(new)) for at in missing.tolist()], dtype=np.int64)
                codes[missing] = own + first
                kept = missing[np.unique(own, return_index=True)[1]]
                self.data += _flat(list(new))[0]
            ends = self.ends[-1] + np.cumsum(sizes[kept])
            self.ends.frombytes(ends.astype(np.int64).tobytes())
            self.hashes.frombytes(hashes[kept].tobytes())
            self._enter(first, hashes[kept])
            self.next = len(self)
        return codes

    def _in_order(self, blob: bytes, sizes: np.ndarray) -> np.ndarray | None:
        """The numbers of strings that follow one another (and what was asked for last) here too; else None."""
        first, n = self.next, sizes.size
        if not n or first + n > len(self):
            first = 0  # from the start again
            if not n or n > len(self):
                return None
        begin, end = self.ends[first], self.ends[first + n]
        if end - begin != len(blob) or self.data[begin:end] != blob:
            return None
        ends = np.array(self.ends[first : first + n + 1])
        if not np.array_equal(np.diff(ends), sizes):
            return None
        self.next = first + n
        return np.arange(first, first + n)

    def _slots(self, hashes: np.ndarray) -> np.ndarray:
        shift = np.uint64(64 - (self.table.size.bit_length() - 1))
        with np.errstate(over="ignore"):
            return ((hashes.view(np.uint64) * SPREAD) >> shift).astype(np.int64)

    def _search(self, names: Sequence[str], blob: bytes, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Numbers (-1: not here) and hashes."""
        hashes = np.fromiter(map(hash, names), dtype=np.int64, count=len(names))
        codes = np.full(hashes.size, -1, dtype=np.int64)
        if not len(self):
            return codes, hashes
        kept, ends = np.frombuffer(self.hashes, dtype=np.int64), np.frombuffer(self.ends, dtype=np.int64)
        own, data = np.frombuffer(blob, dtype=np.uint8), np.frombuffer(self.data, dtype=np.uint8)
        starts = np.cumsum(sizes) - sizes
        pending, slots, mask = np.arange(hashes.size), self._slots(hashes), self.table.size - 1
        while pending.size:
            candidate = self.table[slots]
            there = np.flatnonzero(candidate >= 0)
            alike = there[kept[candidate[there]] == hashes[pending[there]]]
            known, row = candidate[alike], pending[alike]
            same = alike[_equal_bytes(own, starts[row], sizes[row], data, ends[known], ends[known + 1] - ends[known])]
            codes[pending[same]] = candidate[same]
            left = candidate >= 0
            left[same] = False
            pending, slots = pending[left], (slots[left] + 1) & mask
        del kept, ends, data  # a bytearray that is looked at cannot grow
        return codes, hashes

    def _enter(self, first: int, hashes: np.ndarray) -> None:
        """Put the numbers from ``first`` on into the table; where it is half full it is made anew, twice as large."""
        if 2 * len(self) > self.table.size:
            size = self.table.size
            while 2 * len(self) > size:
                size *= 2
            self.table = np.full(size, -1, dtype=np.int32)
            step = 1 << 16
            for begin in range(0, len(self), step):
                self._insert(begin, np.array(self.hashes[begin : begin + step], dtype=np.int64))
        else:
            self._insert(first, hashes)

    def _insert(self, first: int, hashes: np.ndarray) -> None:
        code, slots, mask = np.arange(first, first + hashes.size), self._slots(hashes), self.table.size - 1
        while code.size:
            free = self.table[slots] < 0
            self.table[slots[free]] = code[free]  # of several that want one slot the last takes it
            lost = self.table[slots] != code
            code, slots = code[lost], (slots[lost] + 1) & mask


def all_strings(values: Sequence[object]) -> bool:
    """Whether all values are strings."""
    try:
        "".join(values)  # type: ignore[arg-type]  # faster than to ask each
    except TypeError:
        return False
    return True


def _flat(names: Sequence[str]) -> tuple[bytes, np.ndarray]:
    """The strings' bytes side by side, and how many each has."""
    blob = "".join(names).encode("utf-8", "surrogatepass")
    sizes = np.fromiter(map(len, names), dtype=np.int64, count=len(names))
    if len(blob) != sizes.sum():
        sizes = np.array([len(name.encode("utf-8", "surrogatepass")) for name in names], dtype=np.int64)
    return blob, sizes


def _equal_bytes(
    a: np.ndarray, a_start: np.ndarray, a_size: np.ndarray, b: np.ndarray, b_start: np.ndarray, b_size: np.ndarray
) -> np.ndarray:
    """Whether stretch i of ``a`` holds the bytes of stretch i of ``b``."""
    same = a_size == b_size
    size = np.where(same, a_size, 0)
    before = np.cumsum(size) - size
    step = np.arange(int(size.sum()))
    owner = np.repeat(np.arange(size.size), size)
    step -= before[owner]
    differ = a[a_start[owner] + step] != b[b_start[owner] + step]
    same[owner[differ]] = False
    return same
