#ifndef LARDER_CFILES_H
#define LARDER_CFILES_H

#include <stdint.h>

// Has the disk begin with what was written to a range of a file, and waits for nothing but room in its queue. It is no
// promise: fsync is. Where the system has no such call nothing happens.
void larder_begin_writing(int descriptor, int64_t offset, int64_t length);

// Whether SQLite leaves the log of a database as it is when it closes the connection, and makes no checkpoint then:
// sqlite3_db_config with SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, whose variable arguments Swift cannot pass.
struct sqlite3;
int larder_keep_log(struct sqlite3 *connection, int keeps);

#endif
