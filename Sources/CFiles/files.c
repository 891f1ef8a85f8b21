#if defined(__linux__)
#define _GNU_SOURCE
#include <fcntl.h>
#endif

#include "CFiles.h"

void larder_begin_writing(int descriptor, int64_t offset, int64_t length) {
#if defined(__linux__)
    // Where it fails nothing has begun, and fsync says why.
    (void)sync_file_range(descriptor, offset, length, SYNC_FILE_RANGE_WRITE);
#else
    (void)descriptor;
    (void)offset;
    (void)length;
#endif
}
