/* SPDX-License-Identifier: Apache-2.0
 *
 * One operation of a store in S3: a request that is sent, and sent again, until there is an answer to it.
 */
#ifndef BELAY_CKPT_S3_OP_H
#define BELAY_CKPT_S3_OP_H

#include "ckpt/s3.h"
#include "ckpt/store_net.h"

struct s3_client {
    struct s3_place place;
    struct http_pool *http;
    struct store_auth *auth;
    struct store_facts *facts;
    const atomic_int *cancel; /* NULL: none */
};

struct s3_op {
    const struct s3_client *client;
    struct s3_request request; /* set before; what it points at outlives the op */
    size_t reply_max;          /* bytes of a body; 0: S3_REPLY_MAX */
    struct buf
        *resumes; /* a GET of an object: its bytes come here (cleared first), and a body that was torn is
                                  asked for from there on; NULL: the body is in `reply` */
    const char *result; /* 200 can be an error: how the element of a good reply
                                  begins; NULL: it cannot */
    bool may_lack;      /* S3_NOT_IMPLEMENTED is an answer, not an error */
    /* The answer. */
    enum s3_meaning meaning;
    bool is_unsure; /* an earlier try may have been carried out */
    struct http_reply reply;
};

/* 0: op->meaning is S3_DONE, S3_EXISTS, S3_MISSING or, with may_lack, S3_NOT_IMPLEMENTED. Otherwise an error that
 * says what was asked, what was answered, and what to do. Blocks, for S3_OP_MS at most. The op is deinit'ed in either
 * case, and may be run again after that. */
int s3_op_run(struct s3_op *op, struct err *e);
void s3_op_deinit(struct s3_op *op);

#define S3_OP_MS SECONDS_MS(600)
#define S3_OP_TRIES 10

#endif
