/* SPDX-License-Identifier: Apache-2.0
 *
 * The emulator's S3 on a thread of this process, and a holder of credentials for it.
 */
#ifndef BELAY_TESTS_CKPT_S3_SERVER_H
#define BELAY_TESTS_CKPT_S3_SERVER_H

#include "ckpt/store/store.h"
#include "ckpt/store/store_net.h"
#include "emulator/emulator.h"
#include <pthread.h>

#define S3_SERVER_ACCESS "AKIDEXAMPLE"
#define S3_SERVER_SECRET "wJalrXUtnFEMI-K7MDENG-bPxRfiCYEXAMPLEKEY"

struct s3_server {
    pthread_t thread;
    uv_loop_t loop;
    uv_async_t stop;
    struct emulator emulator;
    struct emulator_config config;
    int port, control_port, api_port;
    struct store_net *net;
    atomic_int n_wanted; /* how often credentials were requested */
};

/* s3: the lines of the section besides the buckets (`jobs`), "page: 3" for one. The holder has the
 * right keys. */
void s3_server_start(struct s3_server *s, const char *s3);
void s3_server_stop(struct s3_server *s);

/* "s3://jobs/PREFIX?endpoint=...more"; borrowed until the next call. */
const char *s3_server_url(const struct s3_server *s, const char *prefix, const char *more);
void s3_server_keys(struct s3_server *s, const char *access, const char *secret);

/* Credentials of a session that may access objects below prefix (which ends in '/') for life_s
 * seconds, as belayd would hand out. */
void s3_server_assume(
    struct s3_server *s, const char *prefix, int life_s, struct store_keys *ret_keys);

/* POST /events, GET /state; fail the test on errors. */
void s3_server_event(struct s3_server *s, const char *json);
/* what: stored "bytes" or "uploads" */
int64_t s3_server_count(struct s3_server *s, const char *what);

#endif
