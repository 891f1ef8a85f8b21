// Preloaded into a program on Linux, this installs each handler of the interrupt key half a second late.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <unistd.h>

int sigaction(int number, const struct sigaction *new, struct sigaction *old) {
    int (*real)(int, const struct sigaction *, struct sigaction *);
    *(void **)&real = dlsym(RTLD_NEXT, "sigaction");
    if (number == SIGINT && new) usleep(500000);
    return real(number, new, old);
}
