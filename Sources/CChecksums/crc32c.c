#include "CChecksums.h"

#include <string.h>

#if defined(__x86_64__)

#define HAS_INSTRUCTIONS 1
#define INSTRUCTIONS __attribute__((target("sse4.2,crc32")))
#include <nmmintrin.h>

bool larder_crc32c_is_available(void) {
    return __builtin_cpu_supports("sse4.2");
}

#define STEP_8(state, word) ((uint32_t)_mm_crc32_u64((state), (word)))
#define STEP_1(state, byte) (_mm_crc32_u8((state), (byte)))

#elif defined(__aarch64__)

#define HAS_INSTRUCTIONS 1
#if defined(__ARM_FEATURE_CRC32)
#define INSTRUCTIONS
#else
#define INSTRUCTIONS __attribute__((target("crc")))
#endif
#include <arm_acle.h>

#if defined(__APPLE__)
bool larder_crc32c_is_available(void) {
    return true; // All of Apple's have them.
}
#elif defined(__linux__)
#include <sys/auxv.h>
bool larder_crc32c_is_available(void) {
    return (getauxval(AT_HWCAP) & (1UL << 7)) != 0; // HWCAP_CRC32
}
#else
bool larder_crc32c_is_available(void) {
    return false;
}
#endif

#define STEP_8(state, word) (__crc32cd((state), (word)))
#define STEP_1(state, byte) (__crc32cb((state), (byte)))

#else

bool larder_crc32c_is_available(void) {
    return false;
}

uint32_t larder_crc32c(uint32_t state, const void *bytes, size_t count) {
    (void)bytes;
    (void)count;
    return state;
}

#endif

#ifdef HAS_INSTRUCTIONS

// An instruction's result is there three cycles after it began, and one can begin in each cycle: three lanes side by
// side keep it busy. Their registers are put together by multiplication with x^(8 * LANE) and x^(16 * LANE), modulo the
// polynomial, where the highest bit stands for x^0.
#define LANE 16384
#define X_8_LANE 0xbf455269u
#define X_16_LANE 0xe2ea32dcu
#define POLYNOMIAL 0x82f63b78u

static uint32_t multiplied(uint32_t a, uint32_t b) {
    uint32_t product = 0;
    for (int bit = 31; bit >= 0; bit--) {
        product ^= b & (0u - ((a >> bit) & 1));
        b = (b >> 1) ^ (POLYNOMIAL & (0u - (b & 1)));
    }
    return product;
}

static inline uint64_t word(const unsigned char *bytes) {
    uint64_t value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

INSTRUCTIONS
uint32_t larder_crc32c(uint32_t state, const void *bytes, size_t count) {
    const unsigned char *next = bytes;
    while (count >= 3 * LANE) {
        uint32_t first = state, second = 0, third = 0;
        for (size_t at = 0; at < LANE; at += 8) {
            first = STEP_8(first, word(next + at));
            second = STEP_8(second, word(next + LANE + at));
            third = STEP_8(third, word(next + 2 * LANE + at));
        }
        state = multiplied(first, X_16_LANE) ^ multiplied(second, X_8_LANE) ^ third;
        next += 3 * LANE;
        count -= 3 * LANE;
    }
    while (count >= 8) {
        state = STEP_8(state, word(next));
        next += 8;
        count -= 8;
    }
    while (count > 0) {
        state = STEP_1(state, *next);
        next += 1;
        count -= 1;
    }
    return state;
}

#endif
