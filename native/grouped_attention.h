/* Attention over 16-bit keys and values, for which llama.cpp's own on AVX2 reads every key again for every head. */
#pragma once

#include "traits.h"

#include <cstdint>

/* How to compute an operation that is such an attention; null for all others, and where the processor that is compiled
 * for lacks AVX2. */
ggml::cpu::tensor_traits *octavo_attention_for(const ggml_tensor *op);

/* From now on tiles of a KV cache whose numbers are equal hold the same bytes. A tile is 32 neighbouring cells of a
 * stream, in all layers. ids, of shape (num_streams, tiles_per_stream), is kept, and read whenever an attention is
 * computed whose cache has these sizes. */
extern "C" {
GGML_BACKEND_API void octavo_use_tile_ids(const int64_t *ids, int64_t num_streams, int64_t tiles_per_stream);
}
