/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/service_manager.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/minmax.h"
#include "base/str.h"
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define WATCHDOG_MIN_MS 1
#define WATCHDOG_USEC_MAX INT64_C(86400000000) /* a day */

struct service_manager {
    struct timers *timers;
    struct timer watchdog;
    int64_t watchdog_ms; /* between two reports; 0 = not wanted */
    int fd;
    struct sockaddr_un address;
    socklen_t address_bytes;
    bool failed; /* and logged */
};

/* The address of NOTIFY_SOCKET: a path, or an abstract name that is written with "@". */
static int read_address(struct service_manager *s, const char *text, struct err *e)
{
    char shown[STR_SHOW_MAX];
    size_t n = strlen(text);
    if ((text[0] != '/' && text[0] != '@') || n < 2 || n >= sizeof(s->address.sun_path))
        return err_set(e, ERR_CONFIG,
            "NOTIFY_SOCKET: expected a path of at most %zu bytes, or @NAME, found %s: only a "
            "service manager should set it",
            sizeof(s->address.sun_path) - 1, str_show(text, shown));
    s->address.sun_family = AF_UNIX;
    memcpy(s->address.sun_path, text, n);
    if (text[0] == '@')
        s->address.sun_path[0] = '\0';
    s->address_bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
    return 0;
}

/* pid: for whom the watchdog is, NULL for any process. */
static int read_watchdog(
    struct service_manager *s, const char *usec, const char *pid, struct err *e)
{
    int64_t us = 0, whose = getpid();
    if (usec && str_to_i64(usec, 1, WATCHDOG_USEC_MAX, "WATCHDOG_USEC", &us, e) != 0)
        return e->kind = ERR_CONFIG;
    if (pid && str_to_i64(pid, 1, INT32_MAX, "WATCHDOG_PID", &whose, e) != 0)
        return e->kind = ERR_CONFIG;
    if (usec && whose == getpid())
        s->watchdog_ms = max_i64(us / 2000, WATCHDOG_MIN_MS);
    return 0;
}

static void report(struct service_manager *s, const char *state)
{
    struct err e;
    ssize_t n = sendto(s->fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT,
        (const struct sockaddr *)&s->address, s->address_bytes);
    if (n >= 0 || s->failed)
        return;
    s->failed = true;
    err_errno(&e, errno, "sending %s to the service manager", state);
    log_warn("the service manager does not know the state of belayd", log_err(&e));
}

static void on_watchdog(struct timer *t, void *ctx)
{
    struct service_manager *s = ctx;
    report(s, "WATCHDOG=1");
    timer_start(s->timers, t, s->watchdog_ms);
}

int service_manager_open(struct timers *timers, struct service_manager **ret, struct err *e)
{
    const char *address = getenv("NOTIFY_SOCKET");
    *ret = NULL;
    if (!address || !address[0])
        return 0;
    struct service_manager *s = mem_alloc(sizeof(*s));
    s->timers = timers;
    timer_init(&s->watchdog, on_watchdog, s);
    s->fd = -1;
    int rc = read_address(s, address, e);
    if (rc == 0)
        rc = read_watchdog(s, getenv("WATCHDOG_USEC"), getenv("WATCHDOG_PID"), e);
    if (rc == 0 && (s->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) < 0)
        rc = err_errno(e, errno, "making a socket for reports to the service manager");
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
    if (rc == 0)
        *ret = s;
    else
        service_manager_close(s);
    return rc;
}

void service_manager_ready(struct service_manager *s)
{
    if (!s)
        return;
    report(s, "READY=1");
    if (s->watchdog_ms > 0)
        on_watchdog(&s->watchdog, s);
}

void service_manager_stopping(struct service_manager *s)
{
    if (s)
        report(s, "STOPPING=1");
}

void service_manager_reloading(struct service_manager *s)
{
    char state[80];
    if (!s)
        return;
    snprintf(state, sizeof(state), "RELOADING=1\nMONOTONIC_USEC=%lld",
        (long long)clock_mono(s->timers->clock).ms * 1000);
    report(s, state);
}

void service_manager_reloaded(struct service_manager *s)
{
    if (s)
        report(s, "READY=1");
}

void service_manager_close(struct service_manager *s)
{
    if (!s)
        return;
    timer_stop(s->timers, &s->watchdog);
    if (s->fd >= 0)
        close(s->fd);
    free(s);
}
