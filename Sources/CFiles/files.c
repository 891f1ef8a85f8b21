#if defined(__linux__)
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/inotify.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
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

#if defined(__linux__)
int larder_watch_folder(const char *path) {
    int descriptor = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (descriptor < 0) return -1;
    if (inotify_add_watch(descriptor, path, IN_CLOSE | IN_ONLYDIR) >= 0) return descriptor;
    (void)close(descriptor);
    return -1;
}

int larder_take_folder_events(int descriptor) {
    _Alignas(struct inotify_event) char bytes[4096];
    int has_notice = 0;
    while (1) {
        ssize_t count = read(descriptor, bytes, sizeof bytes);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return has_notice;
        for (char *at = bytes; at < bytes + count;) {
            const struct inotify_event *event = (const void *)at;
            if (!(event->mask & IN_CLOSE_NOWRITE) || event->len == 0) has_notice = 1;
            at += sizeof *event + event->len;
        }
    }
}

int larder_open_route_socket(void) {
    int descriptor = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
    if (descriptor < 0) return -1;
    struct sockaddr_nl address = {
        .nl_family = AF_NETLINK,
        .nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR | RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE,
    };
    if (bind(descriptor, (struct sockaddr *)&address, sizeof address) != 0) {
        (void)close(descriptor);
        return -1;
    }
    return descriptor;
}

static int is_of_use(const struct sockaddr *address) {
    if (address->sa_family == AF_INET) {
        // 169.254.0.0/16 is of the link alone (RFC 3927).
        uint32_t number = ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr);
        return (number & 0xFFFF0000u) != 0xA9FE0000u;
    }
    if (address->sa_family != AF_INET6) return 0;
    return !IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)address)->sin6_addr);
}

int larder_has_network(void) {
    struct ifaddrs *all = NULL;
    // What cannot be told is tried.
    if (getifaddrs(&all) != 0) return 1;
    int found = 0;
    for (struct ifaddrs *one = all; one && !found; one = one->ifa_next) {
        unsigned needed = IFF_UP | IFF_RUNNING;
        if (!one->ifa_addr || (one->ifa_flags & (needed | IFF_LOOPBACK)) != needed) continue;
        found = is_of_use(one->ifa_addr);
    }
    freeifaddrs(all);
    return found;
}
#endif
