#ifndef LARDER_CHECKSUMS_H
#define LARDER_CHECKSUMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Whether this processor has instructions for CRC-32C. Where it has none, larder_crc32c must not be called.
bool larder_crc32c_is_available(void);

// Goes on with a CRC-32C over `count` bytes. The state is the register itself: inverted, as the instructions keep it.
uint32_t larder_crc32c(uint32_t state, const void *_Nonnull bytes, size_t count);

#endif
