"""Writes a model file made from another one: dequantised to 16 bit, with blocks left out or identity blocks put in.

Kept apart from the demo that uses it, so that the arithmetic on GGUF tensors stands in one place and is tested
without processes. Needs numpy and the `gguf` package, so only worker processes import it.

16 bit because quantised files do not run everywhere: prebuilt servers that were compiled for AVX-VNNI die of an
illegal instruction on their block formats where the CPU has AVX512 but not that extension.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import gguf
import numpy as np
from numpy.typing import NDArray

BlockSequence = Sequence[tuple[int, bool]]
"""Blocks of the new file, first to last: number of the source's block, and whether it is made an identity block."""

_BLOCK_PREFIX: Final = "blk."
_SILENCED: Final = ("attn_output.weight", "ffn_down.weight")
"""The last matrices of a block's two branches: with both zero a block adds nothing to its input."""
_KEPT_TYPES: Final = (gguf.GGMLQuantizationType.F32, gguf.GGMLQuantizationType.F16)


def padded(count: int, blocks: int) -> BlockSequence:
    """`count` blocks with identity blocks, evenly spread, put in until there are `blocks`.

    An identity block is a copy of the block before it with zero output matrices: it costs what a block costs and
    adds exactly 0 to the residual stream, so the model computes what it did. Raises ValueError for fewer blocks.
    """
    if blocks < count:
        raise ValueError(f"a model of {count} blocks cannot be padded to {blocks}")
    extra, rest = divmod(blocks - count, count)
    copies = [1 + extra + (1 if block < rest else 0) for block in range(count)]
    return [(block, copy > 0) for block in range(count) for copy in range(copies[block])]


def shortened(count: int, removed: Collection[int]) -> BlockSequence:
    """`count` blocks without those numbered in `removed`."""
    return [(block, False) for block in range(count) if block not in removed]


@dataclass(frozen=True, slots=True)
class _Planned:
    """One tensor of the new file."""

    name: str
    index: int
    """Position of the source's tensor."""
    form: Literal["as-is", "half", "zero"]
    shape: tuple[int, ...]
    """Elements per axis, outermost first (GGUF stores them the other way round)."""
    dtype: np.dtype[Any]

    @property
    def size(self) -> int:
        """Bytes of the tensor's data."""
        return int(np.prod(self.shape)) * self.dtype.itemsize


class SourceModel:
    """A GGUF file to make others from; its tensors are read when they are needed."""

    def __init__(self, path: Path) -> None:
        self._reader = gguf.GGUFReader(path)
        self._architecture = str(self._value("general.architecture"))
        self._count_key = f"{self._architecture}.block_count"
        self.blocks = int(self._value(self._count_key))
        """Blocks of the model."""

    def size(self, order: BlockSequence) -> int:
        """Bytes of tensor data that a file with these blocks will have."""
        return sum(item.size for item in self._plan(order))

    def write(self, path: Path, order: BlockSequence, *, name: str, on_bytes: Callable[[int], None]) -> None:
        """Write the model with these blocks, in 16 bit; everything else, the tokenizer included, is kept.

        `on_bytes` is called with the size of each tensor after it is written. The file is written tensor by
        tensor, so that it never needs its own size in memory. Raises OSError, and whatever `on_bytes` raises.
        """
        plan = list(self._plan(order))
        changes: dict[str, Any] = {
            "general.name": name,
            "general.file_type": int(gguf.LlamaFileType.MOSTLY_F16),
            self._count_key: len(order),
        }
        # The copies of a block follow each other: keeping the matrices of one block saves dequantising them again.
        half = functools.lru_cache(maxsize=8)(self._half)
        writer = gguf.GGUFWriter(path, self._architecture)
        try:
            self._copy_metadata(writer, changes)
            for item in plan:
                writer.add_tensor_info(item.name, item.shape, item.dtype, item.size)
            writer.write_header_to_file()
            writer.write_kv_data_to_file()
            writer.write_ti_data_to_file()
            for item in plan:
                if item.form == "half":
                    writer.write_tensor_data(half(item.index))
                elif item.form == "zero":
                    writer.write_tensor_data(np.zeros(item.shape, dtype=item.dtype))
                else:
                    writer.write_tensor_data(self._reader.tensors[item.index].data)
                on_bytes(item.size)
            writer.flush()
        finally:
            writer.close()

    def _plan(self, order: BlockSequence) -> Iterator[_Planned]:
        """Tensors of the new file: those outside blocks first, then block after block."""
        inside: dict[int, list[tuple[str, int]]] = {}
        for index, tensor in enumerate(self._reader.tensors):
            if tensor.name.startswith(_BLOCK_PREFIX):
                block_text, _, rest = tensor.name.removeprefix(_BLOCK_PREFIX).partition(".")
                inside.setdefault(int(block_text), []).append((rest, index))
            else:
                yield self._planned(tensor.name, index)
        for number, (block, identity) in enumerate(order):
            for rest, index in inside[block]:
                zero = identity and rest in _SILENCED
                yield self._planned(f"{_BLOCK_PREFIX}{number}.{rest}", index, zero=zero)

    def _planned(self, name: str, index: int, *, zero: bool = False) -> _Planned:
        tensor = self._reader.tensors[index]
        shape = tuple(int(n) for n in reversed(tensor.shape))
        kept = tensor.tensor_type in _KEPT_TYPES
        if kept and not zero:
            return _Planned(name, index, "as-is", shape, tensor.data.dtype)
        dtype = tensor.data.dtype if kept else np.dtype(np.float16)
        return _Planned(name, index, "zero" if zero else "half", shape, dtype)

    def _half(self, index: int) -> NDArray[np.float16]:
        tensor = self._reader.tensors[index]
        values: NDArray[np.float32] = gguf.dequantize(tensor.data, tensor.tensor_type)
        return values.astype(np.float16)

    def _copy_metadata(self, writer: gguf.GGUFWriter, changes: dict[str, Any]) -> None:
        made_by_writer = ("GGUF.", "general.architecture")
        for field in self._reader.fields.values():
            if field.name.startswith(made_by_writer):
                continue
            kind, *inner = field.types
            value = changes[field.name] if field.name in changes else field.contents()
            writer.add_key_value(field.name, value, kind, inner[-1] if inner else None)

    def _value(self, key: str) -> Any:
        field = self._reader.get_field(key)
        if field is None:
            raise ValueError(f"the model file has no {key}")
        return field.contents()
