/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the real program for tests: starts belay-emulator, talks to it over blocking sockets, waits
 * for its events.
 */
#ifndef BELAY_TESTS_EMULATOR_RIG_H
#define BELAY_TESTS_EMULATOR_RIG_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include "base/buf.h"
#include "base/json.h"
#include <sys/types.h>

#define RIG_ACCESS_KEY "AKIDEXAMPLE"
#define RIG_SECRET_KEY "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
#define RIG_ID_MAX 32

struct rig {
    pid_t pid; /* 0 once ended */
    char dir[64];
    char ec2[64], control[64]; /* "127.0.0.1:PORT" */
    int64_t seq;               /* of the last awaited event */
};

/* more: lines appended to the configuration (boot_delay_ms is 50, there is capacity for 10 in
 * us-east-1a). Fails the test if it does not become ready. */
void rig_start(struct rig *r, const char *more);
/* Sends SIGTERM; returns the exit code and removes the directory. */
int rig_stop(struct rig *r);

/* One request. host: "127.0.0.1:PORT". headers: "A: b\r\n" lines or "". Returns the status, 0 if
 * closed without a reply. */
int rig_http(const char *host, const char *method, const char *target, const char *headers,
    const char *body, struct buf *ret_body);

/* A signed API call. body without Version. */
int rig_call(struct rig *r, const char *body, struct buf *ret_body);
/* The same for the price list: a JSON body. */
int rig_list_call(struct rig *r, const char *body, struct buf *ret_body);
/* Launches a spot instance with this user data (printf) and returns its id. */
void rig_launch(struct rig *r, char id[RIG_ID_MAX], const char *user_data, ...)
    __attribute__((format(printf, 3, 4)));

void rig_event(struct rig *r, const char *json);
json_t *rig_state(struct rig *r); /* the caller frees it */
/* its part of the state; the caller frees it */
json_t *rig_instance(struct rig *r, const char *id);
/* waits for the next such entry of the journal */
void rig_wait(struct rig *r, const char *what, const char *id);

/* Files that user data writes, in r->dir. */
void rig_path(const struct rig *r, const char *name, char *out, size_t size);
void rig_make_fifo(const struct rig *r, const char *name);
/* Reads lines from a fifo until n numbers have arrived, and returns them: processes that report
 * their pids. */
void rig_read_pids(const struct rig *r, const char *name, pid_t *pids, size_t n);
bool rig_is_alive(pid_t pid); /* false for a zombie */

#endif
