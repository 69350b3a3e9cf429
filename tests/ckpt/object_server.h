/* SPDX-License-Identifier: Apache-2.0
 *
 * A server of objects to make fail: one bucket as S3 and Google's XML API have it at /jobs, one
 * container as Azure has it at /lab1/jobs. It believes whoever asks; what is asked right is for the
 * emulator, Azurite, Ceph and Swift to say.
 *
 * It is a process of its own, so that a test may fork; what a test and its children set here they
 * share with it.
 */
#ifndef BELAY_TESTS_CKPT_OBJECT_SERVER_H
#define BELAY_TESTS_CKPT_OBJECT_SERVER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

enum server_fault {
    SERVER_FINE,
    /* Nothing is done. */
    SERVER_SLOW_DOWN, /* 503 */
    SERVER_ERROR,     /* 500 */
    SERVER_BEFORE,    /* the connection ends */
    SERVER_KILL_BEFORE,
    /* It is done, and the answer is not what it was. */
    SERVER_AFTER, /* none */
    SERVER_DONE_ERROR,
    /* it ends there; also after the head, in the middle of the body, before its last byte */
    SERVER_CUT_HEAD,
    SERVER_CUT_BODY,
    SERVER_CUT_HALF,
    SERVER_CUT_LAST,
    SERVER_SHORT,   /* half of the body, as if it were all */
    SERVER_LONG,    /* more than the body, as if it were that */
    SERVER_GARBAGE, /* another body of the same length */
    SERVER_NOT_HTTP,
    SERVER_KILL_AFTER,
    /* From then on nothing is done. */
    SERVER_DENIED_ONWARD, /* 403 */
    SERVER_FULL_ONWARD,   /* 507 to what writes */
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
    char sorts[SERVER_SORTS_MAX][64]; /* what the n-th request was, from 0: "PUT chunks" */
    atomic_int fault, at;             /* which request, from 1, has it */
    atomic_int n, n_struck;           /* requests since, and how many had it */
    atomic_int victim;                /* whom to kill; the server's answer waits for its end */
    atomic_bool unconditional;        /* 501 to every conditional write, as Swift's S3 does */
};

void object_server_start(struct object_server *s); /* fails the test */
void object_server_stop(struct object_server *s);

/* The at-th request from now on has the fault. */
void object_server_order(struct object_server *s, enum server_fault fault, int at);

/* Keeps a copy of what is there, or puts that back; clear: nothing is there any more. The
 * connection is the caller's business: these are requests that never have a fault. */
void object_server_take(struct object_server *s);
void object_server_put_back(struct object_server *s);
void object_server_clear(struct object_server *s);

#endif
