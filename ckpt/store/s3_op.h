/* SPDX-License-Identifier: Apache-2.0
 *
 * One operation on an object store: a request, retried until it has a definite answer.
 */
#ifndef BELAY_CKPT_STORE_S3_OP_H
#define BELAY_CKPT_STORE_S3_OP_H

#include "ckpt/s3.h"
#include "ckpt/store/store_net.h"
#include "cloud/aws/sigv4.h"

struct s3_client {
    struct s3_location location;
    struct http_pool *http;
    struct store_auth *auth;
    struct store_facts *facts;
    const atomic_int *cancel; /* NULL if none */
};

struct s3_op {
    const struct s3_client *client;
    struct s3_request request; /* set before the run; what it points to must outlive the op */
    size_t reply_max;          /* bytes of a body; 0 = S3_REPLY_MAX */
    /* for a GET of an object: receives its bytes (cleared first), and an interrupted body is
     * resumed from there; NULL to put the body into `reply` */
    struct buf *resumes;
    /* where a 200 can be an error: prefix of a good reply's root element; else NULL */
    const char *result;
    /* Checks the complete body of a 200; may be NULL. The request is retried after ERR_INVALID (the
     * body is damaged: truncated, garbage) and ERR_UNAVAILABLE (it asks for a later try). */
    int (*accept)(void *ctx, const char *body, size_t n, struct err *e);
    void *accept_ctx;
    bool may_lack; /* S3_NOT_IMPLEMENTED is a result, not an error */
    /* The result. */
    enum s3_meaning meaning;
    bool is_unsure; /* an earlier try may have been executed */
    struct http_reply reply;
};

/* Makes an op whose request has an empty body and no headers. */
struct s3_op s3_op_make(
    const struct s3_client *c, const char *method, const char *key, const char *query);
/* Sets its body, borrowed. sha256 receives the hash in hex, or has it already (known). */
void s3_op_body(struct s3_op *op, const void *p, size_t n, char sha256[SIGV4_HEX_MAX]);
void s3_op_body_known(struct s3_op *op, const void *p, size_t n, const char *sha256);
void s3_op_header(struct s3_op *op, const char *name, const char *value); /* borrowed */

/* Returns 0 if op->meaning is S3_DONE, S3_EXISTS, S3_MISSING or, with may_lack, S3_NOT_IMPLEMENTED;
 * otherwise an error that says what was requested, what the server answered, and what to do. Blocks
 * for at most S3_OP_MS. Call s3_op_deinit in either case; the op may then be run again. */
int s3_op_run(struct s3_op *op, struct err *e);
void s3_op_deinit(struct s3_op *op);

/* s3_op_run, and deinit of an op whose reply is not wanted. */
int s3_op_finish(struct s3_op *op, struct err *e);
/* An error about its request. Returns kind. */
int s3_op_refused(const struct s3_op *op, enum err_kind kind, const char *what, struct err *e);

#define S3_OP_MS SECONDS_MS(600)
#define S3_OP_TRIES 10

#endif
