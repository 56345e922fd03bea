/* Compiled into llama.cpp's CPU backend (native/install_llama_cpp.sh), whose own attention converts every 16-bit key
 * and value again for every head.
 *
 * The heads of a group have the same keys and values. So the queries of a group's heads, and of some neighbouring
 * tokens, are the rows of one matrix: a tile of keys is converted once and multiplied by all rows, and its values
 * likewise. The softmax is taken on the way (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018).
 *
 * Streams that begin with the same text have the same keys and values there, if one is a copy of the other. Where it is
 * said which tiles are the same (octavo_use_tile_ids), neighbouring streams become rows of one matrix too, and the tile
 * is read once for all of them.
 *
 * Tiles, and the spans of tiles that are summed up by themselves, begin at fixed keys. So a row has the same bits in
 * every batch and with every number of threads.
 */
#include "grouped_attention.h"

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)

#include "ggml-cpu-impl.h"
#include "ggml-impl.h"
#include "vec.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <immintrin.h>
#include <type_traits>
#include <vector>

namespace octavo {
namespace {

constexpr int lanes = 8;                     // floats in a vector
constexpr int vectors_at_once = 4;           // of sums, times rows_at_once: more would not fit into the registers
constexpr int rows_at_once = 3;
constexpr int keys_per_tile = 32;            // bits of a set of keys; a tile and its values stay in the L1 cache
constexpr int keys_per_span = 512;
constexpr int max_rows = 64;                 // of a block, where a group has no more heads
constexpr int max_shared_rows = 16;          // of a block whose spans are shared out: their sums are all kept
constexpr int64_t blocks_per_thread = 3;     // with fewer, spans are shared out and streams not put together
constexpr int64_t floats_per_line = 16;      // of the cache
constexpr int64_t halves_per_line = 32;

int64_t divided_up(int64_t number, int64_t divisor) { return (number + divisor - 1) / divisor; }

/* The memory that ggml gives for an operation, cut into arrays. Where there is none yet, what is needed is counted. */
class Memory {
  public:
    explicit Memory(void *begin) : begin(static_cast<float *>(begin)) {}

    float *take(int64_t number) {
        float *array = begin ? begin + num_taken : nullptr;
        num_taken += divided_up(number, floats_per_line) * floats_per_line;
        return array;
    }

    size_t size() const { return num_taken * sizeof(float); }

  private:
    float *begin;
    int64_t num_taken = 0;
};

/* What octavo_use_tile_ids was told; nothing at first. */
struct TileIds {
    const int64_t *ids;
    int64_t num_streams, tiles_per_stream;

    /* Those of an operation's first stream; null where its keys are not of the cache that the numbers are about. */
    const int64_t *of(const ggml_tensor *keys) const {
        const ggml_tensor *cache = keys->view_src;
        if (!cache || cache->ne[1] != tiles_per_stream * keys_per_tile || cache->ne[2] != num_streams) {
            return nullptr;
        }
        return ids + keys->view_offs / cache->nb[2] * tiles_per_stream;
    }
};

TileIds tile_ids = {};

/* Neighbouring streams, neighbouring tokens of each, and the heads of one group, which make the rows: heads lie within
 * tokens and tokens within streams. */
struct Block {
    int64_t first_stream, num_streams, group, first_token, num_tokens;
};

/* An operation's tensors and sizes, and how it is cut: a thread takes a block at a time, or a span of a block's keys. */
struct Attention {
    const ggml_tensor *queries, *keys, *values, *mask, *result;
    const int64_t *ids;
    float scale;
    int64_t head_size, value_size, num_keys, num_tokens, num_streams, num_groups, heads_per_group;
    int64_t tokens_per_block, max_block_streams, rows_per_block, blocks_per_group;
    std::vector<int64_t> first_streams;  // of the blocks, and behind them the number of streams
    int64_t num_blocks, num_spans;
    bool shares_spans;

    Attention(const ggml_tensor *op, int num_threads)
        : queries(op->src[0]), keys(op->src[1]), values(op->src[2]), mask(op->src[3]), result(op),
          ids(tile_ids.of(keys)), scale(ggml_get_op_params_f32(op, 0)), head_size(keys->ne[0]),
          value_size(values->ne[0]), num_keys(keys->ne[1]), num_tokens(queries->ne[1]), num_streams(queries->ne[3]),
          num_groups(keys->ne[2]), heads_per_group(queries->ne[2] / num_groups),
          tokens_per_block(std::clamp<int64_t>(max_rows / heads_per_group, 1, num_tokens)),
          max_block_streams(std::clamp<int64_t>(max_rows / (tokens_per_block * heads_per_group), 1,
                                                std::max<int64_t>(num_streams * num_groups /
                                                                  (blocks_per_thread * num_threads), 1))),
          rows_per_block(max_block_streams * tokens_per_block * heads_per_group),
          blocks_per_group(divided_up(num_tokens, tokens_per_block)), first_streams(cut_streams()),
          num_blocks(blocks_per_group * num_groups * (first_streams.size() - 1)),
          num_spans(divided_up(num_keys, keys_per_span)),
          shares_spans(num_spans > 1 && rows_per_block <= max_shared_rows &&
                       num_blocks < blocks_per_thread * num_threads) {}

    Block block(int64_t index) const {
        const int64_t first_token = index % blocks_per_group * tokens_per_block;
        const int64_t group = index / blocks_per_group % num_groups;
        const int64_t *first_stream = &first_streams[index / blocks_per_group / num_groups];
        return {first_stream[0], first_stream[1] - first_stream[0], group, first_token,
                std::min(tokens_per_block, num_tokens - first_token)};
    }

    bool have_same_tile(int64_t stream, int64_t other, int64_t tile) const {
        const int64_t tiles = tile_ids.tiles_per_stream;
        return ids && ids[stream * tiles + tile] == ids[other * tiles + tile];
    }

  private:
    std::vector<int64_t> cut_streams() const {
        std::vector<int64_t> first_streams = {0};
        for (int64_t stream = 1; stream < num_streams; ++stream) {
            const bool is_full = stream - first_streams.back() == max_block_streams;
            if (is_full || !have_same_tile(stream - 1, stream, 0)) {
                first_streams.push_back(stream);
            }
        }
        first_streams.push_back(num_streams);
        return first_streams;
    }
};

template <class Item> Item *row_of(const ggml_tensor *tensor, int64_t i1, int64_t i2, int64_t i3) {
    char *data = static_cast<char *>(tensor->data);
    return reinterpret_cast<Item *>(data + i1 * tensor->nb[1] + i2 * tensor->nb[2] + i3 * tensor->nb[3]);
}

/* No number where the first is none: what is wrong with a model must not end as an answer. */
float greatest(float first, float second) { return first < second ? second : first; }

/* Of some keys and each row: the greatest score, the sum of exp(score - max), and the sum of the values with these
 * weights, which is still to be divided by it. */
struct Sums {
    float *max, *sum, *values;

    Sums(Memory &memory, const Attention &attention)
        : max(memory.take(attention.rows_per_block)), sum(memory.take(attention.rows_per_block)),
          values(memory.take(attention.rows_per_block * attention.value_size)) {}

    void clear(int64_t num_rows, int64_t value_size) const {
        std::fill_n(max, num_rows, -INFINITY);
        std::fill_n(sum, num_rows, 0.0f);
        std::fill_n(values, num_rows * value_size, 0.0f);
    }

    void add(const Sums &other, int64_t num_rows, int64_t value_size) const {
        for (int64_t row = 0; row < num_rows; ++row) {
            const float new_max = greatest(other.max[row], max[row]);
            if (new_max == -INFINITY) {
                continue;
            }
            const float kept = std::exp(max[row] - new_max), added = std::exp(other.max[row] - new_max);
            float *target = values + row * value_size;
            const float *source = other.values + row * value_size;
            for (int64_t i = 0; i < value_size; ++i) {
                target[i] = target[i] * kept + source[i] * added;
            }
            sum[row] = sum[row] * kept + other.sum[row] * added;
            max[row] = new_max;
        }
    }
};

/* What a thread works with. queries are scaled; masks has a row for each token of each stream, scores for each row of a
 * block. */
struct Workspace {
    float *queries, *keys, *values, *masks, *scores;
    Sums span, total;

    Workspace(Memory &memory, const Attention &attention)
        : queries(memory.take(attention.rows_per_block * attention.head_size)),
          keys(memory.take(keys_per_tile * attention.head_size)),
          values(memory.take(keys_per_tile * attention.value_size)),
          masks(memory.take(attention.max_block_streams * attention.tokens_per_block * keys_per_tile)),
          scores(memory.take(attention.rows_per_block * keys_per_tile)),
          span(memory, attention), total(memory, attention) {}
};

using KeySet = uint32_t;
static_assert(keys_per_tile == 8 * sizeof(KeySet), "a bit for each key");

__m256 load_halves(const ggml_fp16_t *source) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i *>(source)));
}

/* The keys of a tile that a token sees. Those behind the last one are masked too. */
KeySet read_mask(const ggml_fp16_t *source, int64_t num_keys, float *target) {
    KeySet seen = 0;
    for (int i = 0; i < keys_per_tile; i += lanes) {
        __m256 mask = _mm256_set1_ps(-INFINITY);
        if (i < num_keys) {
            mask = load_halves(source + i);
        }
        _mm256_storeu_ps(target + i, mask);
        const __m256 is_seen = _mm256_cmp_ps(mask, _mm256_set1_ps(-INFINITY), _CMP_NEQ_UQ);
        seen |= static_cast<KeySet>(_mm256_movemask_ps(is_seen)) << i;
    }
    return seen;
}

/* Rows of other groups lie between those of one, which no processor guesses: the next tile is asked for early.
 * What nobody sees is zero: left by an earlier sequence, it might be no number, and 0 times that is none. */
void read_tile(const ggml_tensor *tensor, int64_t group, int64_t stream, int64_t first_key, KeySet seen,
               float *target) {
    const int64_t size = tensor->ne[0];
    for (int key = 0; key < keys_per_tile; ++key, target += size) {
        if (!(seen >> key & 1)) {
            std::fill_n(target, size, 0.0f);
            continue;
        }
        const auto *source = row_of<ggml_fp16_t>(tensor, first_key + key, group, stream);
        const ggml_fp16_t *in_next_tile = source + keys_per_tile * tensor->nb[1] / sizeof(ggml_fp16_t);
        for (int64_t i = 0; i < size; i += halves_per_line) {
            _mm_prefetch(reinterpret_cast<const char *>(in_next_tile + i), _MM_HINT_T0);
        }
        for (int64_t i = 0; i < size; i += lanes) {
            _mm256_storeu_ps(target + i, load_halves(source + i));
        }
    }
}

/* GCC would load a vector again for each product. */
inline void keep_in_register(__m256 &vector) { asm("" : "+x"(vector)); }

/* The sums of four vectors each. */
__m128 sums_of(const __m256 (&vectors)[vectors_at_once]) {
    const __m256 pairs = _mm256_hadd_ps(_mm256_hadd_ps(vectors[0], vectors[1]), _mm256_hadd_ps(vectors[2], vectors[3]));
    return _mm_add_ps(_mm256_castps256_ps128(pairs), _mm256_extractf128_ps(pairs, 1));
}

/* Products of some rows of queries with each key of a tile. */
template <int num_rows> void multiply_keys(const float *queries, const float *keys, int64_t size, float *scores) {
    for (int key = 0; key < keys_per_tile; key += vectors_at_once) {
        __m256 sums[num_rows][vectors_at_once] = {};
        for (int64_t i = 0; i < size; i += lanes) {
            for (int k = 0; k < vectors_at_once; ++k) {
                __m256 vector = _mm256_loadu_ps(keys + (key + k) * size + i);
                keep_in_register(vector);
                for (int row = 0; row < num_rows; ++row) {
                    sums[row][k] = _mm256_fmadd_ps(_mm256_loadu_ps(queries + row * size + i), vector, sums[row][k]);
                }
            }
        }
        for (int row = 0; row < num_rows; ++row) {
            _mm_storeu_ps(scores + row * keys_per_tile + key, sums_of(sums[row]));
        }
    }
}

/* Adds to some rows the values of a tile, with the rows' weights. */
template <int num_rows> void add_values(const float *weights, const float *values, int64_t size, float *targets) {
    for (int64_t first = 0; first < size; first += vectors_at_once * lanes) {
        __m256 sums[num_rows][vectors_at_once];
        for (int row = 0; row < num_rows; ++row) {
            for (int i = 0; i < vectors_at_once; ++i) {
                sums[row][i] = _mm256_loadu_ps(targets + row * size + first + i * lanes);
            }
        }
        for (int key = 0; key < keys_per_tile; ++key) {
            for (int i = 0; i < vectors_at_once; ++i) {
                __m256 vector = _mm256_loadu_ps(values + key * size + first + i * lanes);
                keep_in_register(vector);
                for (int row = 0; row < num_rows; ++row) {
                    const __m256 weight = _mm256_set1_ps(weights[row * keys_per_tile + key]);
                    sums[row][i] = _mm256_fmadd_ps(weight, vector, sums[row][i]);
                }
            }
        }
        for (int row = 0; row < num_rows; ++row) {
            for (int i = 0; i < vectors_at_once; ++i) {
                _mm256_storeu_ps(targets + row * size + first + i * lanes, sums[row][i]);
            }
        }
    }
}

/* Rows of a block, all those of some of its streams. */
struct Rows {
    int64_t first, number;
};

/* Calls with the number of the first row and how many they are, as a type. */
template <class Function> void for_some_rows_each(const Rows &rows, Function &&function) {
    const int64_t end = rows.first + rows.number;
    int64_t row = rows.first;
    for (; row + rows_at_once <= end; row += rows_at_once) {
        function(row, std::integral_constant<int, rows_at_once>());
    }
    static_assert(rows_at_once == 3, "a case for each remainder");
    switch (end - row) {
        case 2: return function(row, std::integral_constant<int, 2>());
        case 1: return function(row, std::integral_constant<int, 1>());
    }
}

float max_of(__m256 vector) {
    __m128 half = _mm_max_ps(_mm256_castps256_ps128(vector), _mm256_extractf128_ps(vector, 1));
    half = _mm_max_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_max_ss(half, _mm_movehdup_ps(half)));
}

/* Makes weights of a row's scores, and brings its sums to the new maximum. */
void weigh(float *scores, const float *mask, const Sums &sums, int64_t row, int64_t value_size) {
    __m256 max = _mm256_set1_ps(-INFINITY);
    for (int i = 0; i < keys_per_tile; i += lanes) {
        const __m256 masked = _mm256_add_ps(_mm256_loadu_ps(scores + i), _mm256_loadu_ps(mask + i));
        _mm256_storeu_ps(scores + i, masked);
        max = _mm256_max_ps(max, masked);
    }
    const float new_max = greatest(max_of(max), sums.max[row]);
    if (new_max == -INFINITY) {
        std::fill_n(scores, keys_per_tile, 0.0f);
        return;
    }
    if (new_max != sums.max[row]) {
        const float kept = std::exp(sums.max[row] - new_max);
        sums.sum[row] *= kept;
        ggml_vec_scale_f32(value_size, sums.values + row * value_size, kept);
        sums.max[row] = new_max;
    }
    sums.sum[row] += ggml_vec_soft_max_f32(keys_per_tile, scores, scores, new_max);
}

class BlockOfRows {
  public:
    BlockOfRows(const Attention &attention, const Block &block, const Workspace &work)
        : attention(attention), block(block), work(work), rows_per_stream(block.num_tokens * attention.heads_per_group),
          num_rows(block.num_streams * rows_per_stream) {
        for (int64_t row = 0; row < num_rows; ++row) {
            const auto *source = row_of<float>(attention.queries, token(row), head(row), stream(row));
            float *target = work.queries + row * attention.head_size;
            for (int64_t i = 0; i < attention.head_size; ++i) {
                target[i] = source[i] * attention.scale;
            }
        }
    }

    /* sums_of_span: gives the sums of a span by its number. */
    template <class Function> void add_spans(Function &&sums_of_span) const {
        work.total.clear(num_rows, attention.value_size);
        for (int64_t span = 0; span < attention.num_spans; ++span) {
            work.total.add(sums_of_span(span), num_rows, attention.value_size);
        }
    }

    void sum_span(int64_t span, const Sums &sums) const {
        sums.clear(num_rows, attention.value_size);
        const int64_t end = std::min((span + 1) * keys_per_span, attention.num_keys);
        for (int64_t key = span * keys_per_span; key < end; key += keys_per_tile) {
            for (Rows rows = {0, 0}; rows.first < num_rows; rows.first += rows.number) {
                rows.number = num_sharing(rows.first, key / keys_per_tile);
                if (const KeySet seen = read_masks(rows, key, end - key)) {
                    add_tile(rows, key, seen, sums);
                }
            }
        }
    }

    void write(const Sums &sums) const {
        for (int64_t row = 0; row < num_rows; ++row) {
            const float factor = sums.sum[row] == 0 ? 0 : 1 / sums.sum[row];
            const float *source = sums.values + row * attention.value_size;
            float *target = row_of<float>(attention.result, head(row), token(row), stream(row));
            for (int64_t i = 0; i < attention.value_size; ++i) {
                target[i] = source[i] * factor;
            }
        }
    }

  private:
    int64_t stream(int64_t row) const { return block.first_stream + row / rows_per_stream; }

    int64_t token(int64_t row) const {
        return block.first_token + row % rows_per_stream / attention.heads_per_group;
    }

    int64_t head(int64_t row) const {
        return block.group * attention.heads_per_group + row % attention.heads_per_group;
    }

    /* How many rows from this one on, the first of a stream, have the same tile. */
    int64_t num_sharing(int64_t first_row, int64_t tile) const {
        int64_t row = first_row + rows_per_stream;
        while (row < num_rows && attention.have_same_tile(stream(first_row), stream(row), tile)) {
            row += rows_per_stream;
        }
        return row - first_row;
    }

    float *mask(int64_t row) const { return work.masks + row / attention.heads_per_group * keys_per_tile; }

    /* The keys that some token sees. */
    KeySet read_masks(const Rows &rows, int64_t first_key, int64_t num_keys) const {
        KeySet seen = 0;
        for (int64_t row = rows.first; row < rows.first + rows.number; row += attention.heads_per_group) {
            const auto *source = row_of<ggml_fp16_t>(attention.mask, token(row), 0,
                                                     stream(row) % attention.mask->ne[3]);
            seen |= read_mask(source + first_key, num_keys, mask(row));
        }
        return seen;
    }

    void add_tile(const Rows &rows, int64_t first_key, KeySet seen, const Sums &sums) const {
        const int64_t head_size = attention.head_size, value_size = attention.value_size;
        read_tile(attention.keys, block.group, stream(rows.first), first_key, seen, work.keys);
        for_some_rows_each(rows, [&](int64_t row, auto number) {
            multiply_keys<number>(work.queries + row * head_size, work.keys, head_size,
                                  work.scores + row * keys_per_tile);
        });
        for (int64_t row = rows.first; row < rows.first + rows.number; ++row) {
            weigh(work.scores + row * keys_per_tile, mask(row), sums, row, value_size);
        }
        read_tile(attention.values, block.group, stream(rows.first), first_key, seen, work.values);
        for_some_rows_each(rows, [&](int64_t row, auto number) {
            add_values<number>(work.scores + row * keys_per_tile, work.values, value_size,
                               sums.values + row * value_size);
        });
    }

    const Attention &attention;
    const Block block;
    const Workspace &work;
    const int64_t rows_per_stream, num_rows;
};

/* Bytes of a Workspace, or of Sums. */
template <class Arrays> size_t size_of(const Attention &attention) {
    Memory counted(nullptr);
    Arrays(counted, attention);
    return counted.size();
}

/* One of several that lie one after another. */
template <class Arrays> Arrays arrays_at(char *begin, int64_t index, const Attention &attention) {
    Memory memory(begin + index * size_of<Arrays>(attention));
    return Arrays(memory, attention);
}

/* In ggml's memory are a workspace for each thread, then the sums of each span of each block that are shared out. */
class GroupedAttention final : public ggml::cpu::tensor_traits {
    bool work_size(int num_threads, const ggml_tensor *op, size_t &size) override {
        const Attention attention(op, num_threads);
        const int64_t num_shared = attention.shares_spans ? attention.num_blocks * attention.num_spans : 0;
        size = num_threads * size_of<Workspace>(attention) + num_shared * size_of<Sums>(attention);
        return true;
    }

    bool compute_forward(ggml_compute_params *params, ggml_tensor *op) override {
        const Attention attention(op, params->nth);
        const auto work = arrays_at<Workspace>(static_cast<char *>(params->wdata), params->ith, attention);
        if (attention.shares_spans) {
            compute_spans(*params, attention, work);
        } else {
            compute_blocks(*params, attention, work);
        }
        return true;
    }

    static void compute_blocks(const ggml_compute_params &params, const Attention &attention, const Workspace &work) {
        for_each_share(params, attention.num_blocks, [&](int64_t index) {
            const BlockOfRows rows(attention, attention.block(index), work);
            rows.add_spans([&](int64_t span) {
                rows.sum_span(span, work.span);
                return work.span;
            });
            rows.write(work.total);
        });
    }

    static void compute_spans(const ggml_compute_params &params, const Attention &attention, const Workspace &work) {
        char *begin = static_cast<char *>(params.wdata) + params.nth * size_of<Workspace>(attention);
        for_each_share(params, attention.num_blocks * attention.num_spans, [&](int64_t index) {
            const BlockOfRows rows(attention, attention.block(index / attention.num_spans), work);
            rows.sum_span(index % attention.num_spans, arrays_at<Sums>(begin, index, attention));
        });
        ggml_barrier(params.threadpool);
        for_each_share(params, attention.num_blocks, [&](int64_t index) {
            const BlockOfRows rows(attention, attention.block(index), work);
            const int64_t first = index * attention.num_spans;
            rows.add_spans([&](int64_t span) { return arrays_at<Sums>(begin, first + span, attention); });
            rows.write(work.total);
        });
    }

    /* Calls with each number below `number`, in any of the threads. */
    template <class Function>
    static void for_each_share(const ggml_compute_params &params, int64_t number, Function &&function) {
        if (params.ith == 0) {
            ggml_threadpool_chunk_set(params.threadpool, params.nth);  // the first ones are given by thread
        }
        ggml_barrier(params.threadpool);
        for (int64_t i = params.ith; i < number; i = ggml_threadpool_chunk_add(params.threadpool, 1)) {
            function(i);
        }
    }
};

bool has_rows_of(const ggml_tensor *tensor, ggml_type type, int64_t multiple) {
    return tensor->type == type && tensor->nb[0] == ggml_type_size(type) && tensor->ne[0] % multiple == 0;
}

/* Neither slopes by position, nor bounded scores, nor sinks. */
bool is_plain(const ggml_tensor *op) {
    return ggml_get_op_params_f32(op, 1) == 0 && ggml_get_op_params_f32(op, 2) == 0 && !op->src[4];
}

bool is_ours(const ggml_tensor *op) {
    const ggml_tensor *queries = op->src[0], *keys = op->src[1], *values = op->src[2], *mask = op->src[3];
    return is_plain(op) && has_rows_of(queries, GGML_TYPE_F32, lanes) && has_rows_of(keys, GGML_TYPE_F16, lanes) &&
           has_rows_of(values, GGML_TYPE_F16, vectors_at_once * lanes) && mask &&
           has_rows_of(mask, GGML_TYPE_F16, lanes) && mask->ne[2] == 1 && values->ne[2] == keys->ne[2] &&
           queries->ne[2] % keys->ne[2] == 0 && keys->ne[3] == queries->ne[3] && values->ne[3] == queries->ne[3];
}

}  // namespace
}  // namespace octavo

ggml::cpu::tensor_traits *octavo_attention_for(const ggml_tensor *op) {
    static octavo::GroupedAttention attention;
    return op->op == GGML_OP_FLASH_ATTN_EXT && octavo::is_ours(op) ? &attention : nullptr;
}

void octavo_use_tile_ids(const int64_t *ids, int64_t num_streams, int64_t tiles_per_stream) {
    octavo::tile_ids = {ids, num_streams, tiles_per_stream};
}

#else

ggml::cpu::tensor_traits *octavo_attention_for(const ggml_tensor *) { return nullptr; }

void octavo_use_tile_ids(const int64_t *, int64_t, int64_t) {}

#endif
