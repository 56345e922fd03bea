/* Compiled into llama.cpp's CPU backend (native/install_llama_cpp.sh), whose own product for these types reads every
 * weight again for every token of a batch.
 *
 * Weights are kept in groups of 8 rows, interleaved: a vector of 32 bytes holds 4 neighbouring quants of each row. One
 * multiplication with the 4 quants of an activation, repeated 8 times over a vector, then serves 8 rows, and the weights
 * of a block stay in registers while several columns are multiplied by them.
 *
 * A weight is d·u + m with an unsigned integer u (Q5_0: m = -16·d) or a signed one (Q8_0: m = 0), an activation is e·v
 * with a signed byte v. So a block of 32 adds e·(d·Σuv + m·Σv) to a row of a column. The sums are whole numbers and exact;
 * the blocks are added one after another, whatever the number of columns. So a column's result has the same bits in every
 * batch.
 */
#include "interleaved_quants.h"

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)

#define GGML_COMMON_DECL_CPP
#include "ggml-common.h"

#include "ggml-backend-impl.h"
#include "ggml-cpu-impl.h"
#include "ggml-cpu.h"
#include "ggml-impl.h"
#include "grouped_attention.h"
#include "traits.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <immintrin.h>

namespace octavo {
namespace {

constexpr int block_size = 32;
constexpr int num_rows = 8;                     // in a group
constexpr int num_quads = block_size / 4;       // in a block: a quad is 4 neighbouring quants, of each row or a column
constexpr int num_pairs = num_quads / 2;
constexpr int max_columns = 4;                  // multiplied at once: more would not fit into the registers
constexpr size_t panel_bytes = 128 * 1024;      // of activations that many rows are multiplied by: stays in the L2 cache
constexpr int64_t chunks_per_thread = 8;        // so many that a thread that is held up leaves its work to the others
constexpr size_t buffer_alignment = 64;

static_assert(QK4_1 == block_size && QK5_0 == block_size && QK5_1 == block_size && QK8_0 == block_size,
              "one block size for all types");

/* Quads i and i + 4 of a block's 8 rows: they share a vector of nibbles. */
struct QuadPair {
    __m256i first, second;
};

__m256i load(const void *source) { return _mm256_loadu_si256(static_cast<const __m256i *>(source)); }

/* A 16-bit float for each row. */
struct Halves {
    ggml_half values[num_rows];

    __m256 read() const { return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i *>(values))); }
};

/* The low 4 bits of a block's quants: quad i in the low nibbles of vector i, quad i + 4 in the high ones. ggml's blocks
 * have the same order, so whole groups of 4 bytes are moved. */
struct Nibbles {
    uint8_t bytes[num_rows * block_size / 2];

    void set_row(int row, const uint8_t *quants) {
        for (int i = 0; i < num_pairs; ++i) {
            std::memcpy(bytes + 32 * i + 4 * row, quants + 4 * i, 4);
        }
    }

    QuadPair read(int pair) const {
        const __m256i low = _mm256_set1_epi8(0x0F);
        const __m256i both = load(bytes + 32 * pair);
        return {_mm256_and_si256(both, low), _mm256_and_si256(_mm256_srli_epi16(both, 4), low)};
    }
};

/* The fifth bits: bit i of a byte belongs to quad i. */
struct FifthBits {
    uint32_t words[num_rows];

    /* Bit k of `bits` belongs to the k-th quant. */
    void set_row(int row, const uint8_t (&source)[4]) {
        uint32_t bits, word = 0;
        std::memcpy(&bits, source, sizeof(bits));
        for (int i = 0; i < num_quads; ++i) {
            const uint32_t quad = bits >> 4 * i & 0xF;
            word |= (quad * 0x00204081 & 0x01010101) << i;  // the product has bit j of the quad in byte j, bit 0
        }
        words[row] = word;
    }

    QuadPair add_to(const QuadPair &quads, int pair) const {
        const __m256i fifth = _mm256_set1_epi8(0x10);
        const __m256i bits = load(words);
        return {_mm256_or_si256(quads.first, _mm256_and_si256(_mm256_slli_epi16(bits, 4 - pair), fifth)),
                _mm256_or_si256(quads.second, _mm256_and_si256(_mm256_srli_epi16(bits, pair), fifth))};
    }
};

/* Blocks of 8 rows; none takes more bytes than ggml's 8 blocks. pairs_per_sum: of quads, whose products a
 * 16-bit sum can hold: each adds up to 4 · max(u) · 127. */

struct InterleavedQ4_1 {
    using Plain = block_q4_1;
    static constexpr int pairs_per_sum = 4;
    Halves scales, minima;
    Nibbles nibbles;

    void set_row(int row, const Plain &block) {
        scales.values[row] = block.GGML_COMMON_AGGR_U.GGML_COMMON_AGGR_S.d;
        minima.values[row] = block.GGML_COMMON_AGGR_U.GGML_COMMON_AGGR_S.m;
        nibbles.set_row(row, block.qs);
    }
    QuadPair read(int pair) const { return nibbles.read(pair); }
    __m256 scale() const { return scales.read(); }
    __m256 minimum() const { return minima.read(); }
};

struct InterleavedQ5_0 {
    using Plain = block_q5_0;
    static constexpr int pairs_per_sum = 2;
    Halves scales;
    FifthBits fifth_bits;
    Nibbles nibbles;

    void set_row(int row, const Plain &block) {
        scales.values[row] = block.d;
        fifth_bits.set_row(row, block.qh);
        nibbles.set_row(row, block.qs);
    }
    QuadPair read(int pair) const { return fifth_bits.add_to(nibbles.read(pair), pair); }
    __m256 scale() const { return scales.read(); }
    __m256 minimum() const { return _mm256_mul_ps(scale(), _mm256_set1_ps(-16.0f)); }
};

struct InterleavedQ5_1 {
    using Plain = block_q5_1;
    static constexpr int pairs_per_sum = 2;
    Halves scales, minima;
    FifthBits fifth_bits;
    Nibbles nibbles;

    void set_row(int row, const Plain &block) {
        scales.values[row] = block.GGML_COMMON_AGGR_U.GGML_COMMON_AGGR_S.d;
        minima.values[row] = block.GGML_COMMON_AGGR_U.GGML_COMMON_AGGR_S.m;
        fifth_bits.set_row(row, block.qh);
        nibbles.set_row(row, block.qs);
    }
    QuadPair read(int pair) const { return fifth_bits.add_to(nibbles.read(pair), pair); }
    __m256 scale() const { return scales.read(); }
    __m256 minimum() const { return minima.read(); }
};

struct InterleavedQ8_0 {
    using Plain = block_q8_0;
    Halves scales;
    int8_t quads[num_quads][num_rows][4];

    void set_row(int row, const Plain &block) {
        scales.values[row] = block.d;
        for (int i = 0; i < num_quads; ++i) {
            std::memcpy(quads[i][row], block.qs + 4 * i, 4);
        }
    }
    __m256 scale() const { return scales.read(); }
    __m256 minimum() const { return _mm256_setzero_ps(); }
};

/* 32 neighbouring numbers of a column, rounded to 8 bits. sum: of the quants. */
struct Activations {
    float scale, sum;
    int8_t quants[block_size];

    __m256i quad(int i) const {
        int32_t bytes;
        std::memcpy(&bytes, quants + 4 * i, sizeof(bytes));
        return _mm256_set1_epi32(bytes);
    }
};

float max_magnitude(const __m256 (&values)[4]) {
    const __m256 sign = _mm256_set1_ps(-0.0f);
    __m256 max = _mm256_andnot_ps(sign, values[0]);
    for (int i = 1; i < 4; ++i) {
        max = _mm256_max_ps(max, _mm256_andnot_ps(sign, values[i]));
    }
    __m128 half = _mm_max_ps(_mm256_castps256_ps128(max), _mm256_extractf128_ps(max, 1));
    half = _mm_max_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_max_ss(half, _mm_movehdup_ps(half)));
}

/* The sum of 32 signed bytes. */
int sum_of_quants(__m256i quants) {
    const __m256i pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), quants);
    const __m256i quads = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
    __m128i half = _mm_add_epi32(_mm256_castsi256_si128(quads), _mm256_extracti128_si256(quads, 1));
    half = _mm_add_epi32(half, _mm_unpackhi_epi64(half, half));
    return _mm_cvtsi128_si32(_mm_add_epi32(half, _mm_shuffle_epi32(half, 1)));
}

/* The greatest magnitude becomes 127; halves are rounded to even numbers. */
void quantize(const float *source, Activations &target) {
    __m256 values[4];
    __m256i integers[4];
    for (int i = 0; i < 4; ++i) {
        values[i] = _mm256_loadu_ps(source + 8 * i);
    }
    const float max = max_magnitude(values);
    const __m256 factor = _mm256_set1_ps(max > 0 ? 127 / max : 0);
    for (int i = 0; i < 4; ++i) {
        integers[i] = _mm256_cvtps_epi32(_mm256_mul_ps(values[i], factor));
    }
    // Both instructions pack the halves of their operands apart, which leaves groups of 4 in the order 0 2 4 6 1 3 5 7.
    const __m256i packed = _mm256_packs_epi16(_mm256_packs_epi32(integers[0], integers[1]),
                                              _mm256_packs_epi32(integers[2], integers[3]));
    const __m256i quants = _mm256_permutevar8x32_epi32(packed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    _mm256_storeu_si256(reinterpret_cast<__m256i *>(target.quants), quants);
    target.scale = max / 127;
    target.sum = static_cast<float>(sum_of_quants(quants));
}

/* Have the compiler keep to the order of the source at this place. GCC would multiply one column after another, each a
 * chain of sums that waits for itself; all columns side by side take two thirds of the time. */
inline void keep_order(__m256i &sum) { asm volatile("" : "+x"(sum)); }

/* Σuv of a block: for each column the rows' sums as 32-bit integers. */
template <class Weights, int num_columns>
void dot(const Weights &weights, const Activations *columns, int64_t num_blocks, __m256i (&totals)[num_columns]) {
    for (__m256i &total : totals) {
        total = _mm256_setzero_si256();
    }
    for (int first = 0; first < num_pairs; first += Weights::pairs_per_sum) {
        __m256i sums[num_columns] = {};
        for (int pair = first; pair < first + Weights::pairs_per_sum; ++pair) {
            const QuadPair quads = weights.read(pair);
            for (int column = 0; column < num_columns; ++column) {
                const Activations &activations = columns[column * num_blocks];
                const __m256i left = _mm256_maddubs_epi16(quads.first, activations.quad(pair));
                const __m256i right = _mm256_maddubs_epi16(quads.second, activations.quad(pair + num_pairs));
                sums[column] = _mm256_add_epi16(_mm256_add_epi16(sums[column], left), right);
            }
            for (__m256i &sum : sums) {
                keep_order(sum);
            }
        }
        for (int column = 0; column < num_columns; ++column) {
            const __m256i wide = _mm256_madd_epi16(sums[column], _mm256_set1_epi16(1));
            totals[column] = _mm256_add_epi32(totals[column], wide);
        }
    }
}

/* The same with signed quants, whose signs are given to the activations. Two products fill a 16-bit sum. */
template <int num_columns>
void dot(const InterleavedQ8_0 &weights, const Activations *columns, int64_t num_blocks,
         __m256i (&totals)[num_columns]) {
    for (__m256i &total : totals) {
        total = _mm256_setzero_si256();
    }
    for (int quad = 0; quad < num_quads; ++quad) {
        const __m256i quants = load(weights.quads[quad]);
        const __m256i magnitudes = _mm256_abs_epi8(quants);
        for (int column = 0; column < num_columns; ++column) {
            const __m256i activations = _mm256_sign_epi8(columns[column * num_blocks].quad(quad), quants);
            const __m256i sums = _mm256_maddubs_epi16(magnitudes, activations);
            totals[column] = _mm256_add_epi32(totals[column], _mm256_madd_epi16(sums, _mm256_set1_epi16(1)));
        }
        for (__m256i &total : totals) {
            keep_order(total);
        }
    }
}

/* 8 rows times `num_columns` columns. Columns lie num_blocks apart, results `stride` apart. */
template <class Weights, int num_columns>
void multiply(const Weights *weights, const Activations *columns, int64_t num_blocks, float *results, int64_t stride) {
    __m256 sums[num_columns] = {};
    for (int64_t block = 0; block < num_blocks; ++block) {
        __m256i totals[num_columns];
        dot(weights[block], columns + block, num_blocks, totals);
        const __m256 scale = weights[block].scale(), minimum = weights[block].minimum();
        for (int column = 0; column < num_columns; ++column) {
            const Activations &activations = columns[column * num_blocks + block];
            const __m256 offsets = _mm256_mul_ps(minimum, _mm256_set1_ps(activations.sum));
            const __m256 unscaled = _mm256_fmadd_ps(_mm256_cvtepi32_ps(totals[column]), scale, offsets);
            sums[column] = _mm256_fmadd_ps(unscaled, _mm256_set1_ps(activations.scale), sums[column]);
        }
    }
    for (int column = 0; column < num_columns; ++column) {
        _mm256_storeu_ps(results + column * stride, sums[column]);
    }
}

/* A product's sizes and how it is cut into chunks, each a range of row groups times a range of columns. */
struct Product {
    int64_t num_blocks, num_groups, num_columns;
    int64_t groups_per_chunk, columns_per_chunk;
    int64_t num_row_chunks, num_column_chunks;

    Product(const ggml_tensor *op, int num_threads)
        : num_blocks(op->src[0]->ne[0] / block_size), num_groups(op->src[0]->ne[1] / num_rows),
          num_columns(ggml_nrows(op->src[1])) {
        const int64_t fitting = panel_bytes / (num_blocks * sizeof(Activations));
        columns_per_chunk = std::max<int64_t>(fitting / max_columns, 1) * max_columns;
        num_column_chunks = (num_columns + columns_per_chunk - 1) / columns_per_chunk;
        const int64_t wanted = (num_threads * chunks_per_thread + num_column_chunks - 1) / num_column_chunks;
        groups_per_chunk = std::max<int64_t>(num_groups / wanted, 1);
        num_row_chunks = (num_groups + groups_per_chunk - 1) / groups_per_chunk;
    }
};

const float *column_of(const ggml_tensor *tensor, int64_t index) {
    const int64_t i1 = index % tensor->ne[1];
    const int64_t i2 = index / tensor->ne[1] % tensor->ne[2];
    const int64_t i3 = index / tensor->ne[1] / tensor->ne[2];
    const char *data = static_cast<const char *>(tensor->data);
    return reinterpret_cast<const float *>(data + i1 * tensor->nb[1] + i2 * tensor->nb[2] + i3 * tensor->nb[3]);
}

/* This thread's share of the blocks of all columns. */
void quantize_share(const ggml_compute_params &params, const ggml_tensor *source, const Product &product) {
    Activations *target = static_cast<Activations *>(params.wdata);
    const int64_t total = product.num_columns * product.num_blocks;
    const int64_t end = total * (params.ith + 1) / params.nth;
    for (int64_t index = total * params.ith / params.nth; index < end;) {
        const int64_t first = index % product.num_blocks;
        const int64_t last = std::min(product.num_blocks, first + end - index);
        const float *column = column_of(source, index / product.num_blocks);
        for (int64_t block = first; block < last; ++block, ++index) {
            quantize(column + block * block_size, target[index]);
        }
    }
}

/* What can be done with a tensor of one type in this layout. */
class Layout : public ggml::cpu::tensor_traits {
  public:
    /* Bring a whole tensor of ggml's layout into this one. */
    virtual void interleave(ggml_tensor *tensor, const void *source) const = 0;
};

template <class Weights> class LayoutOf final : public Layout {
    static_assert(sizeof(Weights) == num_rows * sizeof(typename Weights::Plain), "a tensor's size stays what it was");

  public:
    void interleave(ggml_tensor *tensor, const void *source) const override {
        const auto *plain = static_cast<const typename Weights::Plain *>(source);
        auto *target = static_cast<Weights *>(tensor->data);
        const int64_t num_blocks = tensor->ne[0] / block_size;
        for (int64_t group = 0; group < tensor->ne[1] / num_rows; ++group, plain += num_rows * num_blocks) {
            for (int64_t block = 0; block < num_blocks; ++block, ++target) {
                for (int row = 0; row < num_rows; ++row) {
                    target->set_row(row, plain[row * num_blocks + block]);
                }
            }
        }
    }

  private:
    bool work_size(int, const ggml_tensor *op, size_t &size) override {
        size = ggml_nelements(op->src[1]) / block_size * sizeof(Activations);
        return true;
    }

    bool compute_forward(ggml_compute_params *params, ggml_tensor *op) override {
        GGML_ASSERT(op->src[1]->nb[0] == sizeof(float) && ggml_is_contiguous(op));
        const Product product(op, params->nth);
        quantize_share(*params, op->src[1], product);
        if (params->ith == 0) {
            ggml_threadpool_chunk_set(params->threadpool, params->nth);  // the first ones are given by thread
        }
        ggml_barrier(params->threadpool);
        const int64_t num_chunks = product.num_row_chunks * product.num_column_chunks;
        for (int64_t i = params->ith; i < num_chunks; i = ggml_threadpool_chunk_add(params->threadpool, 1)) {
            multiply_chunk(product, i, *params, op);
        }
        return true;
    }

    static void multiply_chunk(const Product &product, int64_t chunk, const ggml_compute_params &params,
                               const ggml_tensor *op) {
        const int64_t first_group = chunk % product.num_row_chunks * product.groups_per_chunk;
        const int64_t first_column = chunk / product.num_row_chunks * product.columns_per_chunk;
        const int64_t end_group = std::min(first_group + product.groups_per_chunk, product.num_groups);
        const int64_t end_column = std::min(first_column + product.columns_per_chunk, product.num_columns);
        for (int64_t group = first_group; group < end_group; ++group) {
            multiply_group(product, group, first_column, end_column, params, op);
        }
    }

    static void multiply_group(const Product &product, int64_t group, int64_t first_column, int64_t end_column,
                               const ggml_compute_params &params, const ggml_tensor *op) {
        const Weights *weights = static_cast<const Weights *>(op->src[0]->data) + group * product.num_blocks;
        const Activations *activations = static_cast<const Activations *>(params.wdata);
        float *results = static_cast<float *>(op->data) + group * num_rows;
        const int64_t stride = op->ne[0];
        for (int64_t column = first_column; column < end_column; column += max_columns) {
            multiply_columns(std::min<int64_t>(end_column - column, max_columns), weights,
                             activations + column * product.num_blocks, product.num_blocks, results + column * stride,
                             stride);
        }
    }

    template <class... Arguments> static void multiply_columns(int64_t number, Arguments... arguments) {
        static_assert(max_columns == 4, "a case for each number");
        switch (number) {
            case 1: return multiply<Weights, 1>(arguments...);
            case 2: return multiply<Weights, 2>(arguments...);
            case 3: return multiply<Weights, 3>(arguments...);
            default: return multiply<Weights, 4>(arguments...);
        }
    }
};

/* Null for what is left to llama.cpp's other ways. */
Layout *layout_for(const ggml_tensor *weights) {
    static LayoutOf<InterleavedQ4_1> q4_1;
    static LayoutOf<InterleavedQ5_0> q5_0;
    static LayoutOf<InterleavedQ5_1> q5_1;
    static LayoutOf<InterleavedQ8_0> q8_0;
    if (ggml_n_dims(weights) != 2 || weights->ne[1] % num_rows != 0) {
        return nullptr;
    }
    switch (weights->type) {
        case GGML_TYPE_Q4_1: return &q4_1;
        case GGML_TYPE_Q5_0: return &q5_0;
        case GGML_TYPE_Q5_1: return &q5_1;
        case GGML_TYPE_Q8_0: return &q8_0;
        default: return nullptr;
    }
}

bool is_ours(const ggml_tensor *tensor) {
    return tensor->buffer && tensor->buffer->buft == octavo_interleaved_buffer_type();
}

class ExtraBufferType final : public ggml::cpu::extra_buffer_type {
    bool supports_op(ggml_backend_dev_t, const ggml_tensor *op) override {
        if (op->op != GGML_OP_MUL_MAT || !is_ours(op->src[0]) || !layout_for(op->src[0])) {
            return false;
        }
        const ggml_tensor *activations = op->src[1];
        const bool in_reach = !activations->buffer || ggml_backend_buft_is_host(activations->buffer->buft);
        return in_reach && activations->type == GGML_TYPE_F32;
    }

    /* ggml asks here for each operation, also for those that have nothing to do with this type of buffer. */
    ggml::cpu::tensor_traits *get_tensor_traits(const ggml_tensor *op) override {
        const bool is_product = op->op == GGML_OP_MUL_MAT && is_ours(op->src[0]);
        return is_product ? static_cast<Layout *>(op->src[0]->extra) : octavo_attention_for(op);
    }
};

const char *name(ggml_backend_buffer_type_t) { return "CPU_INTERLEAVED"; }

size_t alignment(ggml_backend_buffer_type_t) { return buffer_alignment; }

ggml_status init_tensor(ggml_backend_buffer_t, ggml_tensor *tensor) {
    tensor->extra = layout_for(tensor);
    return GGML_STATUS_SUCCESS;
}

void set_tensor(ggml_backend_buffer_t, ggml_tensor *tensor, const void *data, size_t offset, size_t size) {
    GGML_ASSERT(offset == 0 && size == ggml_nbytes(tensor));
    static_cast<const Layout *>(tensor->extra)->interleave(tensor, data);
}

/* A buffer of the processor's own, but for how its tensors are written. What is read back would be in this layout. */
ggml_backend_buffer_t allocate(ggml_backend_buffer_type_t type, size_t size) {
    ggml_backend_buffer_t buffer = ggml_backend_buft_alloc_buffer(ggml_backend_cpu_buffer_type(), size);
    if (buffer) {
        buffer->buft = type;
        buffer->iface.init_tensor = init_tensor;
        buffer->iface.set_tensor = set_tensor;
        buffer->iface.get_tensor = nullptr;
        buffer->iface.cpy_tensor = nullptr;
    }
    return buffer;
}

}  // namespace
}  // namespace octavo

ggml_backend_buffer_type_t octavo_interleaved_buffer_type() {
    static octavo::ExtraBufferType context;
    static ggml_backend_buffer_type type = {
        {octavo::name, octavo::allocate, octavo::alignment, nullptr, nullptr, nullptr},
        ggml_backend_reg_dev_get(ggml_backend_cpu_reg(), 0),
        static_cast<ggml::cpu::extra_buffer_type *>(&context),
    };
    return &type;
}

#else

ggml_backend_buffer_type_t octavo_interleaved_buffer_type() { return nullptr; }

#endif
