/* Attention over 16-bit keys and values, for which llama.cpp's own on AVX2 reads every key again for every head. */
#pragma once

#include "traits.h"

/* How to compute an operation that is such an attention; null for all others, and where the processor that is compiled
 * for lacks AVX2. */
ggml::cpu::tensor_traits *octavo_attention_for(const ggml_tensor *op);
