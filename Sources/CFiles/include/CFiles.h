#ifndef LARDER_CFILES_H
#define LARDER_CFILES_H

#include <stdint.h>

// Has the disk begin with what was written to a range of a file, and waits for nothing but room in its queue. It is no
// promise: fsync is. Where the system has no such call nothing happens.
void larder_begin_writing(int descriptor, int64_t offset, int64_t length);

#endif
