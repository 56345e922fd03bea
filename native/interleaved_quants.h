/* Matrix products with weights of the types Q4_1, Q5_0, Q5_1 and Q8_0, which llama.cpp does not repack for AVX2. */
#pragma once

#include "ggml-backend.h"

/* Where such weights are kept as the products read them; null where the processor that is compiled for lacks AVX2. */
ggml_backend_buffer_type_t octavo_interleaved_buffer_type();
