from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

gguf = pytest.importorskip("gguf")
np = pytest.importorskip("numpy")

from spectui.llama.models.gguf_writer import SourceModel, padded, shortened  # noqa: E402  after the skips

MATRICES = ("attn_q.weight", "attn_output.weight", "ffn_up.weight", "ffn_down.weight")
VALUES = np.linspace(-1.0, 1.0, 4 * 64, dtype=np.float32).reshape(4, 64)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A model of three blocks in Q8_0, with metadata of several types."""
    path = tmp_path / "source.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_uint32("llama.block_count", 3)
    writer.add_string("general.name", "source")
    writer.add_uint32("general.file_type", 7)
    writer.add_float32("llama.rope.freq_base", 10000.0)
    writer.add_bool("tokenizer.ggml.add_bos_token", False)
    writer.add_array("tokenizer.ggml.tokens", ["a", "\u0120b", "c"])
    writer.add_array("tokenizer.ggml.token_type", [3, 1, 1])
    quantised = gguf.quantize(VALUES, gguf.GGMLQuantizationType.Q8_0)
    writer.add_tensor("token_embd.weight", quantised, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
    writer.add_tensor("output_norm.weight", VALUES[0])
    for block in range(3):
        writer.add_tensor(f"blk.{block}.attn_norm.weight", VALUES[0] + block)
        for name in MATRICES:
            data = gguf.quantize(VALUES * (block + 1), gguf.GGMLQuantizationType.Q8_0)
            writer.add_tensor(f"blk.{block}.{name}", data, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def made(source: Path, order: object, sizes: list[int] | None = None) -> Any:
    path = source.with_name("made.gguf")
    on_bytes = (sizes if sizes is not None else []).append
    SourceModel(source).write(path, order, name="made", on_bytes=on_bytes)  # type: ignore[arg-type]
    return gguf.GGUFReader(path)


def test_identity_blocks_are_spread_evenly() -> None:
    assert padded(3, 3) == [(0, False), (1, False), (2, False)]
    assert padded(3, 5) == [(0, False), (0, True), (1, False), (1, True), (2, False)]
    assert padded(2, 6) == [(0, False), (0, True), (0, True), (1, False), (1, True), (1, True)]
    with pytest.raises(ValueError, match="a model of 3 blocks cannot be padded to 2"):
        padded(3, 2)


def test_middle_blocks_are_left_out() -> None:
    assert shortened(4, range(1, 3)) == [(0, False), (3, False)]


def test_metadata_is_kept_but_for_name_type_and_count(source: Path) -> None:
    before = {f.name: (f.types, f.contents()) for f in gguf.GGUFReader(source).fields.values()}
    after = {f.name: (f.types, f.contents()) for f in made(source, padded(3, 7)).fields.values()}
    changed = {name for name in after if after[name] != before.get(name)}
    assert changed == {"general.name", "general.file_type", "llama.block_count", "GGUF.tensor_count"}
    assert set(after) == set(before)
    assert after["general.name"][1] == "made"
    assert after["general.file_type"][1] == 1
    assert after["llama.block_count"][1] == 7


def test_padded_blocks_are_copies_that_add_nothing(source: Path) -> None:
    tensors = {tensor.name: tensor for tensor in made(source, padded(3, 5)).tensors}
    assert len(tensors) == 2 + 5 * 5
    embedding = tensors["token_embd.weight"]
    assert embedding.tensor_type is gguf.GGMLQuantizationType.F16
    quantised = gguf.quantize(VALUES, gguf.GGMLQuantizationType.Q8_0)
    expected = gguf.dequantize(quantised, gguf.GGMLQuantizationType.Q8_0).astype(np.float16)
    assert np.array_equal(embedding.data, expected)
    assert tensors["output_norm.weight"].tensor_type is gguf.GGMLQuantizationType.F32
    for number, (block, identity) in enumerate(padded(3, 5)):
        assert np.array_equal(tensors[f"blk.{number}.attn_norm.weight"].data, VALUES[0] + block)
        for name in MATRICES:
            data = tensors[f"blk.{number}.{name}"].data
            silenced = identity and name in {"attn_output.weight", "ffn_down.weight"}
            assert bool(np.any(data)) is not silenced
            assert data.shape == VALUES.shape
            if not silenced:
                assert np.allclose(data, VALUES * (block + 1), atol=0.05)


def test_shortened_blocks_are_renumbered_without_a_gap(source: Path) -> None:
    tensors = {tensor.name: tensor for tensor in made(source, shortened(3, {1})).tensors}
    assert {name.split(".")[1] for name in tensors if name.startswith("blk.")} == {"0", "1"}
    assert np.array_equal(tensors["blk.1.attn_norm.weight"].data, VALUES[0] + 2)


def test_progress_counts_the_bytes_that_were_announced(source: Path) -> None:
    sizes: list[int] = []
    made(source, padded(3, 4), sizes)
    assert sum(sizes) == SourceModel(source).size(padded(3, 4))


def test_a_listener_that_raises_ends_the_writing(source: Path) -> None:
    def refuse(_size: int) -> None:
        raise LookupError

    with pytest.raises(LookupError):
        SourceModel(source).write(source.with_name("x.gguf"), padded(3, 3), name="x", on_bytes=refuse)


def test_a_file_without_blocks(tmp_path: Path) -> None:
    path = tmp_path / "vocab.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with pytest.raises(ValueError, match=r"the model file has no llama\.block_count"):
        SourceModel(path)
