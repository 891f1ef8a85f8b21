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

// Declared here, so that this target needs no header of SQLite: https://www.sqlite.org/c3ref/db_config.html
int sqlite3_db_config(struct sqlite3 *, int, ...);
enum { no_checkpoint_on_close = 1006, defensive = 1010 };

int larder_keep_log(struct sqlite3 *connection, int keeps) {
    return sqlite3_db_config(connection, no_checkpoint_on_close, keeps, (int *)0);
}

int larder_lower_defence(struct sqlite3 *connection) {
    return sqlite3_db_config(connection, defensive, 0, (int *)0);
}
