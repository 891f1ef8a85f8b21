// Preloaded into a program on Linux, the machine sleeps for an hour between any two looks at the clock that counts sleep.
#define _GNU_SOURCE
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *time) {
    static atomic_long slept;
    int result = (int)syscall(SYS_clock_gettime, clock, time);
    if (result == 0 && clock == CLOCK_BOOTTIME) time->tv_sec += atomic_fetch_add(&slept, 3600) + 3600;
    return result;
}
