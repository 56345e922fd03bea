/* Force-included when llama.cpp is built (native/install_llama_cpp.sh).
 *
 * GCC 12's _tile_loadconfig(const void *) tells the compiler that it reads 8 bytes. The processor reads 64, so the
 * stores that fill the rest of a tile configuration on the stack are removed as dead, and ggml's AMX code dies with a
 * general protection fault in its first matrix product. This macro names the whole 64-byte operand.
 * Other compilers and processors are left alone.
 */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#include <immintrin.h>
static inline void octavo_tile_loadconfig(const void *config)
{
    __asm__ volatile("ldtilecfg\t%0" : : "m"(*(const char(*)[64])config) : "memory");
}
#undef _tile_loadconfig
#define _tile_loadconfig(config) octavo_tile_loadconfig(config)
#endif
