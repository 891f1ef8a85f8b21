#include "allocations.h"

#include <errno.h>
#include <stdlib.h>

#if defined(__GLIBC__)

#include <malloc.h>

// The program's own definitions come before the C library's, for all the libraries that it loads, too.
// While nothing is counted they cost a branch. They hold no lock: count where one thread works.

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *memory, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

static volatile int is_counting = 0;
static volatile long count = 0;

#define NOTE() do { if (is_counting) count += 1; } while (0)

void *malloc(size_t size) { NOTE(); return __libc_malloc(size); }
void *calloc(size_t number, size_t size) { NOTE(); return __libc_calloc(number, size); }
void *realloc(void *memory, size_t size) { NOTE(); return __libc_realloc(memory, size); }
void *aligned_alloc(size_t alignment, size_t size) { NOTE(); return __libc_memalign(alignment, size); }

int posix_memalign(void **memory, size_t alignment, size_t size) {
    NOTE();
    *memory = __libc_memalign(alignment, size);
    return *memory ? 0 : ENOMEM;
}

void larder_allocations_begin(void) {
    count = 0;
    is_counting = 1;
}

long larder_allocations_end(void) {
    is_counting = 0;
    return count;
}

long larder_allocations_trim(void) {
    malloc_trim(0);
    struct mallinfo2 info = mallinfo2();
    return (long)(info.uordblks + info.hblkhd);
}

#else

void larder_allocations_begin(void) {}
long larder_allocations_end(void) { return -1; }
long larder_allocations_trim(void) { return -1; }

#endif
