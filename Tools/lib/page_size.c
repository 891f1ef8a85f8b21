// Preloaded into the tests, it has LMDB make pages of another size: LMDB asks the system how large its pages are.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

static long told(void) {
    const char *text = getenv("LARDER_PAGE_SIZE");
    return text ? atol(text) : 4096;
}

int getpagesize(void) { return (int)told(); }

long sysconf(int name) {
    static long (*real)(int);
    if (name == _SC_PAGESIZE) return told();
    if (!real) real = (long (*)(int))dlsym(RTLD_NEXT, "sysconf");
    return real(name);
}
