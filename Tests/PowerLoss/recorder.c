// Records what a program does to the files of a folder: preloaded into it (LD_PRELOAD), on Linux.
//
//     LARDER_RECORDED_FOLDER   the folder, absolute and without symbolic links; what is below it is recorded
//     LARDER_RECORDING         the log; must not be in the folder
//     LARDER_MARKS             a file; each write to it becomes a mark between the changes
//     LARDER_FAILING_SYNC      SUFFIX:N, where a sync fails: the Nth, from 1, of those of files and folders whose path
//                              ends with SUFFIX fails with EIO, and no other; it does not reach the system
//     LARDER_KILL_AFTER        TEXT:N, where the program is killed: after the Nth change, from 1, whose second name has
//                              TEXT in it; of all changes where TEXT is empty
//
// The log is a sequence of entries, each a `struct entry` and then the first path, the second path and the bytes that
// were written. It is in the order in which things happened: one lock is held around each call and its entry.
//
// What is written through a mapping or by the C library for itself (stdio) is not seen. The first kind is reported as
// an entry of its own, so that whoever reads the log can refuse it for the files that count; that nothing else was
// missed is seen by comparing what the log makes with what is there in the end.
//
// Nothing here allocates memory, and nothing calls a function that is replaced here: calls go straight to the system.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum kind {
    ROOT = 1, CREATE, WRITE, TRUNCATE, ALLOCATE, RENAME, UNLINK, MKDIR, RMDIR, LINK, SYNC, DATASYNC, MARK, MAPPED,
    UNKNOWN, FAILED_SYNC
};

struct entry {
    uint32_t kind;
    // Of a write: 1 where the descriptor makes each write durable (O_DSYNC).
    uint32_t flags;
    uint64_t inode;
    // Of a write or an allocation where it begins; of a truncation the new size; of what is made the mode that was
    // asked for, before the process's mask.
    uint64_t offset;
    // Of an allocation how far it goes.
    uint64_t length;
    uint32_t path_length, other_length;
    uint64_t data_length;
};

enum { NOTHING, FILE_OF_FOLDER, MARKS };

static struct { uint64_t inode; uint8_t what, synced; } descriptors[65536];
static const int descriptor_limit = sizeof descriptors / sizeof descriptors[0];
static char folder[PATH_MAX], marks[PATH_MAX];
static size_t folder_length;
static char failing[PATH_MAX];
static long syncs_until_failure;
static char fatal[PATH_MAX];
static long changes_until_death;
static int recording = -1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void append(const void *bytes, size_t count) {
    const char *next = bytes;
    while (count > 0) {
        ssize_t done = syscall(SYS_write, recording, next, count);
        if (done < 0 && errno == EINTR) continue;
        // A log with a hole proves nothing.
        if (done <= 0) abort();
        next += done;
        count -= (size_t)done;
    }
}

// Ends the program where this is the change after which it is killed. With status 0: whoever watches it expects that.
static void live_on(const char *other) {
    if (changes_until_death <= 0 || (fatal[0] && !(other && strstr(other, fatal)))) return;
    if (--changes_until_death == 0) syscall(SYS_exit_group, 0);
}

static void note(struct entry entry, const char *path, const char *other) {
    entry.path_length = path ? (uint32_t)strlen(path) : 0;
    entry.other_length = other ? (uint32_t)strlen(other) : 0;
    append(&entry, sizeof entry);
    append(path, entry.path_length);
    append(other, entry.other_length);
    if (entry.kind != ROOT) live_on(other);
}

__attribute__((constructor)) static void begin(void) {
    const char *root = getenv("LARDER_RECORDED_FOLDER"), *log = getenv("LARDER_RECORDING");
    const char *marked = getenv("LARDER_MARKS");
    if (!root || !log || strlen(root) >= sizeof folder) return;
    strcpy(folder, root);
    folder_length = strlen(folder);
    if (marked && strlen(marked) < sizeof marks) strcpy(marks, marked);
    const char *fault = getenv("LARDER_FAILING_SYNC");
    const char *colon = fault ? strrchr(fault, ':') : NULL;
    if (colon && (size_t)(colon - fault) < sizeof failing) {
        memcpy(failing, fault, (size_t)(colon - fault));
        syncs_until_failure = strtol(colon + 1, NULL, 10);
    }
    const char *end = getenv("LARDER_KILL_AFTER");
    colon = end ? strrchr(end, ':') : NULL;
    if (colon && (size_t)(colon - end) < sizeof fatal) {
        memcpy(fatal, end, (size_t)(colon - end));
        changes_until_death = strtol(colon + 1, NULL, 10);
    }
    recording = (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (recording < 0) abort();
    struct stat status;
    if (fstatat(AT_FDCWD, folder, &status, 0) != 0) abort();
    note((struct entry){.kind = ROOT, .inode = status.st_ino}, folder, NULL);
}

// The absolute path without "//", "." and "..", as a text: symbolic links are not followed. False where it is too long.
static int absolute(int base, const char *path, char *result) {
    char joined[2 * PATH_MAX];
    if (path[0] == '/') {
        if (strlen(path) >= sizeof joined) return 0;
        strcpy(joined, path);
    } else {
        char link[64], start[PATH_MAX];
        ssize_t count;
        if (base == AT_FDCWD) {
            strcpy(link, "/proc/self/cwd");
        } else {
            snprintf(link, sizeof link, "/proc/self/fd/%d", base);
        }
        count = syscall(SYS_readlinkat, AT_FDCWD, link, start, sizeof start - 1);
        if (count < 0 || (size_t)count + strlen(path) + 2 > sizeof joined) return 0;
        start[count] = 0;
        snprintf(joined, sizeof joined, "%s/%s", start, path);
    }
    size_t length = 0;
    for (const char *next = joined; *next;) {
        while (*next == '/') next++;
        size_t count = strcspn(next, "/");
        if (count == 0) break;
        if (count == 2 && next[0] == '.' && next[1] == '.') {
            while (length > 0 && result[--length] != '/') {}
        } else if (!(count == 1 && next[0] == '.')) {
            if (length + count + 2 > PATH_MAX) return 0;
            result[length++] = '/';
            memcpy(result + length, next, count);
            length += count;
        }
        next += count;
    }
    result[length] = 0;
    return 1;
}

static int is_recorded(int base, const char *path, char *result) {
    if (recording < 0 || !path || !absolute(base, path, result)) return 0;
    return strncmp(result, folder, folder_length) == 0 && (result[folder_length] == '/' || result[folder_length] == 0);
}

// What a descriptor is; forgotten where it has become another file's without being closed here.
static int what(int descriptor) {
    if (recording < 0 || descriptor < 0 || descriptor >= descriptor_limit) return NOTHING;
    if (descriptors[descriptor].what == NOTHING) return NOTHING;
    struct stat status;
    if (fstat(descriptor, &status) != 0 || status.st_ino != descriptors[descriptor].inode) {
        descriptors[descriptor].what = NOTHING;
    }
    return descriptors[descriptor].what;
}

// Read without the lock: nobody changes a descriptor's entry but who opens or closes it.
static int is_known(int descriptor) {
    return recording >= 0 && descriptor >= 0 && descriptor < descriptor_limit
        && descriptors[descriptor].what != NOTHING;
}

// MARK: Names

static int opened(int base, const char *path, int flags, mode_t mode) {
    char name[PATH_MAX];
    int is_mark = recording >= 0 && marks[0] && path && strcmp(path, marks) == 0;
    if (!is_mark && !is_recorded(base, path, name)) return (int)syscall(SYS_openat, base, path, flags, mode);
    pthread_mutex_lock(&lock);
    struct stat status;
    int existed = fstatat(base, path, &status, 0) == 0;
    int descriptor = (int)syscall(SYS_openat, base, path, flags, mode);
    int failure = errno;
    if (descriptor >= 0 && fstat(descriptor, &status) == 0) {
        if (descriptor >= descriptor_limit) abort();
        descriptors[descriptor].inode = status.st_ino;
        descriptors[descriptor].what = is_mark ? MARKS : FILE_OF_FOLDER;
        descriptors[descriptor].synced = (flags & O_DSYNC) != 0;
        if (!is_mark && !existed) {
            note((struct entry){.kind = CREATE, .inode = status.st_ino, .offset = mode}, name, NULL);
        } else if (!is_mark && (flags & O_TRUNC) && (flags & O_ACCMODE) != O_RDONLY) {
            note((struct entry){.kind = TRUNCATE, .inode = status.st_ino}, name, NULL);
        }
    }
    pthread_mutex_unlock(&lock);
    errno = failure;
    return descriptor;
}

static mode_t mode_of(int flags, va_list *arguments) {
    return (flags & (O_CREAT | __O_TMPFILE)) ? va_arg(*arguments, mode_t) : 0;
}

#define OPENING(flags, call) \
    va_list arguments; \
    va_start(arguments, flags); \
    mode_t mode = mode_of(flags, &arguments); \
    va_end(arguments); \
    return call

int open(const char *path, int flags, ...) { OPENING(flags, opened(AT_FDCWD, path, flags, mode)); }
int open64(const char *path, int flags, ...) { OPENING(flags, opened(AT_FDCWD, path, flags, mode)); }
int openat(int base, const char *path, int flags, ...) { OPENING(flags, opened(base, path, flags, mode)); }
int openat64(int base, const char *path, int flags, ...) { OPENING(flags, opened(base, path, flags, mode)); }
int __open_2(const char *path, int flags) { return opened(AT_FDCWD, path, flags, 0); }
int __open64_2(const char *path, int flags) { return opened(AT_FDCWD, path, flags, 0); }
int creat(const char *path, mode_t mode) { return opened(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }

int close(int descriptor) {
    if (is_known(descriptor)) {
        pthread_mutex_lock(&lock);
        descriptors[descriptor].what = NOTHING;
        pthread_mutex_unlock(&lock);
    }
    return (int)syscall(SYS_close, descriptor);
}

static int same_base_call(int number, int base, const char *path, int argument) {
    return (int)syscall(number, base, path, argument);
}

static int changed_name(enum kind kind, int number, int base, const char *path, int argument) {
    char name[PATH_MAX];
    if (!is_recorded(base, path, name)) return same_base_call(number, base, path, argument);
    pthread_mutex_lock(&lock);
    int result = same_base_call(number, base, path, argument);
    int failure = errno;
    if (result == 0) {
        struct stat status = {0};
        if (kind == MKDIR && fstatat(base, path, &status, 0) != 0) abort();
        note((struct entry){
            .kind = kind, .inode = status.st_ino, .offset = kind == MKDIR ? (uint64_t)argument : 0}, name, NULL);
    }
    pthread_mutex_unlock(&lock);
    errno = failure;
    return result;
}

int mkdirat(int base, const char *path, mode_t mode) {
    return changed_name(MKDIR, SYS_mkdirat, base, path, (int)mode);
}
int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }
int unlinkat(int base, const char *path, int flags) {
    return changed_name(flags & AT_REMOVEDIR ? RMDIR : UNLINK, SYS_unlinkat, base, path, flags);
}
int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }
int rmdir(const char *path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }
int remove(const char *path) {
    int result = unlink(path);
    return result != 0 && (errno == EISDIR || errno == EPERM) ? rmdir(path) : result;
}

static int two_names(enum kind kind, int number, int from, const char *path, int to, const char *other, int flags) {
    char name[PATH_MAX], second[PATH_MAX];
    int leaves = is_recorded(from, path, name), enters = is_recorded(to, other, second);
    if (!leaves && !enters) return (int)syscall(number, from, path, to, other, flags);
    pthread_mutex_lock(&lock);
    int result = (int)syscall(number, from, path, to, other, flags);
    int failure = errno;
    if (result == 0) {
        // What crosses the folder's border, or swaps, is not understood.
        int is_known_kind = leaves && enters && (kind == LINK || flags == 0 || flags == 1 /* RENAME_NOREPLACE */);
        note((struct entry){.kind = is_known_kind ? kind : UNKNOWN}, name, second);
    }
    pthread_mutex_unlock(&lock);
    errno = failure;
    return result;
}

int renameat2(int from, const char *path, int to, const char *other, unsigned flags) {
    return two_names(RENAME, SYS_renameat2, from, path, to, other, (int)flags);
}
int renameat(int from, const char *path, int to, const char *other) { return renameat2(from, path, to, other, 0); }
int rename(const char *path, const char *other) { return renameat2(AT_FDCWD, path, AT_FDCWD, other, 0); }
int linkat(int from, const char *path, int to, const char *other, int flags) {
    return two_names(LINK, SYS_linkat, from, path, to, other, flags);
}
int link(const char *path, const char *other) { return linkat(AT_FDCWD, path, AT_FDCWD, other, 0); }

// MARK: Contents

// Where the next byte goes that is written without an offset.
static uint64_t position(int descriptor) {
    int flags = fcntl(descriptor, F_GETFL);
    struct stat status;
    if (flags >= 0 && (flags & O_APPEND) && fstat(descriptor, &status) == 0) return (uint64_t)status.st_size;
    return (uint64_t)syscall(SYS_lseek, descriptor, 0, SEEK_CUR);
}

static void note_write(int descriptor, const struct iovec *parts, int count, uint64_t offset, size_t written) {
    struct entry entry = {
        .kind = descriptors[descriptor].what == MARKS ? MARK : WRITE,
        .flags = descriptors[descriptor].synced, .inode = descriptors[descriptor].inode, .offset = offset,
        .data_length = written,
    };
    append(&entry, sizeof entry);
    for (int part = 0; part < count && written > 0; part++) {
        size_t length = parts[part].iov_len < written ? parts[part].iov_len : written;
        append(parts[part].iov_base, length);
        written -= length;
    }
    live_on(NULL);
}

// - at: Where to write; -1 for the descriptor's position.
static ssize_t written(int descriptor, const struct iovec *parts, int count, off_t at) {
    if (!is_known(descriptor)) {
        return at < 0 ? syscall(SYS_writev, descriptor, parts, count)
            : syscall(SYS_pwritev, descriptor, parts, count, (long)at, 0L);
    }
    pthread_mutex_lock(&lock);
    int kind = what(descriptor);
    uint64_t offset = at < 0 ? position(descriptor) : (uint64_t)at;
    ssize_t result = at < 0 ? syscall(SYS_writev, descriptor, parts, count)
        : syscall(SYS_pwritev, descriptor, parts, count, (long)at, 0L);
    int failure = errno;
    if (result > 0 && kind != NOTHING) note_write(descriptor, parts, count, offset, (size_t)result);
    pthread_mutex_unlock(&lock);
    errno = failure;
    return result;
}

ssize_t write(int descriptor, const void *bytes, size_t count) {
    if (!is_known(descriptor)) return syscall(SYS_write, descriptor, bytes, count);
    struct iovec part = {(void *)bytes, count};
    return written(descriptor, &part, 1, -1);
}
ssize_t pwrite(int descriptor, const void *bytes, size_t count, off_t offset) {
    if (!is_known(descriptor)) return syscall(SYS_pwrite64, descriptor, bytes, count, offset);
    struct iovec part = {(void *)bytes, count};
    return written(descriptor, &part, 1, offset);
}
ssize_t pwrite64(int descriptor, const void *bytes, size_t count, off64_t offset) {
    return pwrite(descriptor, bytes, count, offset);
}
ssize_t writev(int descriptor, const struct iovec *parts, int count) { return written(descriptor, parts, count, -1); }
ssize_t pwritev(int descriptor, const struct iovec *parts, int count, off_t offset) {
    return written(descriptor, parts, count, offset);
}
ssize_t pwritev64(int descriptor, const struct iovec *parts, int count, off64_t offset) {
    return written(descriptor, parts, count, offset);
}

// Those that copy between files are taken apart into reads and writes, as C libraries do where the system has none.
static ssize_t copied(int source, off_t *from, int target, off_t *to, size_t count) {
    char bytes[1 << 16];
    size_t done = 0;
    while (done < count) {
        size_t wanted = count - done < sizeof bytes ? count - done : sizeof bytes;
        ssize_t got = from ? syscall(SYS_pread64, source, bytes, wanted, *from)
            : syscall(SYS_read, source, bytes, wanted);
        if (got <= 0) return done > 0 || got == 0 ? (ssize_t)done : -1;
        for (ssize_t put = 0; put < got;) {
            ssize_t next = to ? pwrite(target, bytes + put, (size_t)(got - put), *to)
                : write(target, bytes + put, (size_t)(got - put));
            if (next < 0) return -1;
            put += next;
            if (to) *to += next;
        }
        if (from) *from += got;
        done += (size_t)got;
    }
    return (ssize_t)done;
}
ssize_t sendfile(int target, int source, off_t *offset, size_t count) {
    if (is_known(target)) return copied(source, offset, target, NULL, count);
    return syscall(SYS_sendfile, target, source, offset, count);
}
ssize_t sendfile64(int target, int source, off64_t *offset, size_t count) {
    return sendfile(target, source, offset, count);
}
ssize_t copy_file_range(int source, off64_t *from, int target, off64_t *to, size_t count, unsigned flags) {
    if (is_known(target)) return copied(source, from, target, to, count);
    return syscall(SYS_copy_file_range, source, from, target, to, count, flags);
}

static int resized(int descriptor, off_t size) {
    if (!is_known(descriptor)) return (int)syscall(SYS_ftruncate, descriptor, size);
    pthread_mutex_lock(&lock);
    int kind = what(descriptor);
    int result = (int)syscall(SYS_ftruncate, descriptor, size);
    int failure = errno;
    if (result == 0 && kind == FILE_OF_FOLDER) {
        note((struct entry){
            .kind = TRUNCATE, .inode = descriptors[descriptor].inode, .offset = (uint64_t)size}, NULL, NULL);
    }
    pthread_mutex_unlock(&lock);
    errno = failure;
    return result;
}
int ftruncate(int descriptor, off_t size) { return resized(descriptor, size); }
int ftruncate64(int descriptor, off64_t size) { return resized(descriptor, size); }
int truncate(const char *path, off_t size) {
    int descriptor = open(path, O_WRONLY | O_CLOEXEC);
    if (descriptor < 0) return -1;
    int result = resized(descriptor, size), failure = errno;
    close(descriptor);
    errno = failure;
    return result;
}
int truncate64(const char *path, off64_t size) { return truncate(path, size); }

int fallocate(int descriptor, int mode, off_t offset, off_t length) {
    if (!is_known(descriptor)) return (int)syscall(SYS_fallocate, descriptor, mode, offset, length);
    pthread_mutex_lock(&lock);
    int kind = what(descriptor);
    int result = (int)syscall(SYS_fallocate, descriptor, mode, offset, length);
    int failure = errno;
    if (result == 0 && kind == FILE_OF_FOLDER) {
        note((struct entry){
            .kind = mode == 0 ? ALLOCATE : UNKNOWN, .inode = descriptors[descriptor].inode,
            .offset = (uint64_t)offset, .length = (uint64_t)length}, NULL, NULL);
    }
    pthread_mutex_unlock(&lock);
    errno = failure;
    return result;
}
int fallocate64(int descriptor, int mode, off64_t offset, off64_t length) {
    return fallocate(descriptor, mode, offset, length);
}
int posix_fallocate(int descriptor, off_t offset, off_t length) {
    int before = errno;
    int result = fallocate(descriptor, 0, offset, length) == 0 ? 0 : errno;
    errno = before;
    return result;
}
int posix_fallocate64(int descriptor, off64_t offset, off64_t length) {
    return posix_fallocate(descriptor, offset, length);
}

// MARK: Syncs

// Whether this is the sync that is to fail.
static int fails(int descriptor) {
    if (syncs_until_failure <= 0) return 0;
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t count = syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path);
    size_t length = strlen(failing);
    if (count < (ssize_t)length || memcmp(path + count - length, failing, length) != 0) return 0;
    return --syncs_until_failure == 0;
}

static int synced(enum kind kind, int number, int descriptor) {
    if (!is_known(descriptor)) return (int)syscall(number, descriptor);
    pthread_mutex_lock(&lock);
    int known = what(descriptor);
    if (known == FILE_OF_FOLDER && fails(descriptor)) {
        note((struct entry){.kind = FAILED_SYNC, .inode = descriptors[descriptor].inode}, NULL, NULL);
        pthread_mutex_unlock(&lock);
        errno = EIO;
        return -1;
    }
    int result = (int)syscall(number, descriptor);
    int failure = errno;
    if (result == 0 && known == FILE_OF_FOLDER) {
        note((struct entry){.kind = kind, .inode = descriptors[descriptor].inode}, NULL, NULL);
    }
    pthread_mutex_unlock(&lock);
    errno = failure;
    return result;
}

// `sync_file_range` and `msync` are left alone: the first promises nothing, and what the second would write is
// reported.
int fsync(int descriptor) { return synced(SYNC, SYS_fsync, descriptor); }
int fdatasync(int descriptor) { return synced(DATASYNC, SYS_fdatasync, descriptor); }

// MARK: Mappings

static void *mapped(void *address, size_t length, int protection, int flags, int descriptor, off_t offset) {
    void *result = (void *)syscall(SYS_mmap, address, length, protection, flags, descriptor, offset);
    int is_shared = (flags & MAP_TYPE) == MAP_SHARED || (flags & MAP_TYPE) == MAP_SHARED_VALIDATE;
    if (result == MAP_FAILED || !is_shared || !(protection & PROT_WRITE) || !is_known(descriptor)) return result;
    int failure = errno;
    pthread_mutex_lock(&lock);
    if (what(descriptor) == FILE_OF_FOLDER) {
        note((struct entry){.kind = MAPPED, .inode = descriptors[descriptor].inode}, NULL, NULL);
    }
    pthread_mutex_unlock(&lock);
    errno = failure;
    return result;
}
void *mmap(void *address, size_t length, int protection, int flags, int descriptor, off_t offset) {
    return mapped(address, length, protection, flags, descriptor, offset);
}
void *mmap64(void *address, size_t length, int protection, int flags, int descriptor, off64_t offset) {
    return mapped(address, length, protection, flags, descriptor, offset);
}
