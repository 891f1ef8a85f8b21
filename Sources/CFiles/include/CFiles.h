#ifndef LARDER_CFILES_H
#define LARDER_CFILES_H

#include <stddef.h>
#include <stdint.h>

// Has the disk begin with what was written to a range of a file, and waits for nothing but room in its queue. It is no
// promise: fsync is. Where the system has no such call nothing happens.
void larder_begin_writing(int descriptor, int64_t offset, int64_t length);

// Whether SQLite leaves the log of a database as it is when it closes the connection, and makes no checkpoint then:
// sqlite3_db_config with SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, whose variable arguments Swift cannot pass.
struct sqlite3;
int larder_keep_log(struct sqlite3 *connection, int keeps);

// Lets a connection read damaged definitions of tables, which Apple's SQLite refuses by itself: the same function with
// SQLITE_DBCONFIG_DEFENSIVE.
int larder_lower_defence(struct sqlite3 *connection);

#if defined(__linux__)
// A descriptor that is readable when a process has closed a folder, or a file in it; -1 where there is none. It waits for
// nothing, and no program that this process starts inherits it.
int larder_watch_folder(const char *path);

// Reads what such a descriptor has. 1 where it tells of the folder itself, or of a file that the process could write to; 0
// where processes have only read in the folder.
int larder_take_folder_events(int descriptor);

// A socket that is readable when the kernel has changed a link, an address or a route; -1 where there is none. It waits
// for nothing, and no program that this process starts inherits it.
int larder_open_route_socket(void);

// Whether a link other than the loopback is up and has an address that is not good for that link alone.
int larder_has_network(void);
#endif

// The C library's functions on memory, inlined where they are called, for layers that do not import the system's module.
static inline int larder_compare(const void *one, const void *other, size_t count) {
    return __builtin_memcmp(one, other, count);
}
// Has the processor fetch memory that will be read soon. Nothing is read: any address is allowed.
static inline void larder_prefetch(const void *memory, size_t size) {
    for (size_t offset = 0; offset < size; offset += 64) __builtin_prefetch((const char *)memory + offset);
}
static inline void *larder_reallocate(void *memory, size_t size) { return __builtin_realloc(memory, size); }
static inline void larder_free(void *memory) { __builtin_free(memory); }

#endif
