/* SPDX-License-Identifier: Apache-2.0
 *
 * An object server with faults on demand: one bucket with the S3 and Google XML APIs at /jobs, one
 * Azure container at /lab1/jobs. It does not check credentials; the correctness of requests is
 * tested with the emulator, Azurite, Ceph and Swift.
 *
 * It is a separate process, so that a test may fork; its settings are in memory shared with the
 * test and its children.
 */
#ifndef BELAY_TESTS_CKPT_OBJECT_SERVER_H
#define BELAY_TESTS_CKPT_OBJECT_SERVER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

enum server_fault {
    SERVER_FINE,
    /* The request is not executed. */
    SERVER_SLOW_DOWN, /* 503 */
    SERVER_ERROR,     /* 500 */
    SERVER_BEFORE,    /* the connection is closed */
    SERVER_KILL_BEFORE,
    /* The request is executed, and the answer is modified. */
    SERVER_AFTER, /* no answer */
    SERVER_DONE_ERROR,
    /* the answer is cut: in the head, after it, in the middle of the body, before its last byte */
    SERVER_CUT_HEAD,
    SERVER_CUT_BODY,
    SERVER_CUT_HALF,
    SERVER_CUT_LAST,
    SERVER_SHORT,   /* half of the body, with matching length */
    SERVER_LONG,    /* more than the body, with matching length */
    SERVER_GARBAGE, /* another body of the same length */
    SERVER_NOT_HTTP,
    SERVER_KILL_AFTER,
    /* From then on no request is executed. */
    SERVER_DENIED_ONWARD, /* 403 */
    SERVER_FULL_ONWARD,   /* 507 to writes */
    SERVER_FAULTS
};
extern const char *const server_fault_names[];

struct object_server {
    pid_t pid;
    int port;
    struct server_orders *orders; /* shared with the server and with children */
};

#define SERVER_SORTS_MAX 256

struct server_orders {
    char sorts[SERVER_SORTS_MAX][64]; /* sort of the n-th request, from 0: "PUT chunks" */
    atomic_int fault, at;             /* the fault, and the request, from 1, that has it */
    atomic_int n, n_struck;           /* requests since, and how many had the fault */
    atomic_int victim;                /* the process to kill; the server answers after its end */
    atomic_bool unconditional;        /* 501 to every conditional write, as Swift's S3 does */
};

void object_server_start(struct object_server *s); /* fails the test */
void object_server_stop(struct object_server *s);

/* The at-th request from now on has the fault. */
void object_server_order(struct object_server *s, enum server_fault fault, int at);

/* take: copies all objects; put back: restores the copy; clear: removes all objects. These commands
 * never have a fault. */
void object_server_take(struct object_server *s);
void object_server_put_back(struct object_server *s);
void object_server_clear(struct object_server *s);

#endif
