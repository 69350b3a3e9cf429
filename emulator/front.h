/* SPDX-License-Identifier: Apache-2.0
 *
 * A front makes a region into one provider: the protocols of its API and of its instances' metadata
 * service. It is a const struct of functions over a region and a state of its own. They are pure
 * except for open: a request in, status and bytes out. front_server.c has the sockets, fronts.c the
 * list of fronts.
 */
#ifndef BELAY_EMULATOR_FRONT_H
#define BELAY_EMULATOR_FRONT_H

#include "base/http_header.h"
#include "emulator/region.h"

#define FRONT_HEADERS_MAX 64
#define FRONT_REPLY_HEADERS_MAX 8
#define FRONT_SECRET_BYTES 32

struct front_request {
    const char *method;
    const char *path;   /* decoded, without the query */
    const char *target; /* path and query as sent */
    const struct http_header *headers;
    size_t n_headers;
    const void *body; /* none when a waiting request is repeated */
    size_t body_len;
    /* for a repeated request: the mark of the first reply; NULL for a first request */
    const char *mark;
    bool is_last; /* the request has waited for its maximum and must be answered now */
};

/* case-insensitive; NULL if absent */
const char *front_header(const struct front_request *r, const char *name);
/* the text after '?'; may be "" */
const char *front_query(const struct front_request *r);

struct front_reply {
    int status;
    const char *content_type; /* static */
    struct {
        const char *name; /* static */
        char value[640];
    } headers[FRONT_REPLY_HEADERS_MAX];
    size_t n_headers;
    struct buf body; /* owned by the caller */
    /* > 0: no reply yet. The request is repeated after each change of the region, and a last time,
     * with is_last, after this time. */
    int64_t wait_ms;
    char mark[40]; /* passed to the repeated request */
    /* For API calls: */
    char action[FAULT_NAME_MAX]; /* name in events and the journal; "" if not known yet */
    char request_id[64];         /* for the journal; "" if none */
    bool is_noted;               /* recorded in the journal even if it succeeded */
};

void front_reply_header(struct front_reply *reply, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The context of a request. */
struct front_site {
    struct region *region;
    void *state;       /* owned by the front */
    struct wall now;   /* the region's time */
    struct wall clock; /* this machine's, for dates in requests */
    /* The metadata service's instance: */
    struct instance *instance; /* NULL for the API */
    /* random, per service, so that its tokens are invalid at any other */
    const unsigned char *secret;
};

/* A fault that refuses the next call of this action: returns its code, or throttle_code; NULL if
 * none. Borrowed from ret_fault. */
const char *front_refusal(
    struct region *r, const char *action, const char *throttle_code, struct fault *ret_fault);
/* The same for a call that can only be throttled. */
const char *front_throttled(struct region *r, const char *action, const char *throttle_code);

/* Parameters for opening a front. Borrowed until it is closed. */
struct front_setup {
    struct region *region;
    const void *options; /* from read_options; NULL if no section was read */
    const char *dir;     /* directory for files handed to users */
    int64_t role_ttl_ms; /* of credentials issued by the metadata service */
    void (*console)(
        void *ctx, const struct instance *i, struct buf *out); /* an instance's output so far */
    void *console_ctx;
};

struct config_section; /* config_section.h */

struct front {
    /* "aws": name in the configuration, the journal and the catalogue of types */
    const char *name;
    const char *port_key;         /* key of the API's address in the port file */
    const char *region, *account; /* default names */
    /* the account's key in the configuration; NULL if it has none */
    const char *account_key;
    bool is_on_demand_only; /* pools have no `spot` */
    const char *disk_type;  /* default; NULL if it has no volumes */
    int64_t notice_s;       /* default */
    int64_t role_ttl_ms;    /* default */
    /* bytes of an API request; larger ones are refused with 413 */
    size_t body_max;
    const char *garbage, *garbage_type; /* the truncated reply of drop_reply */
    /* the error code for a call that took effect but is answered with an error */
    const char *internal_error;

    /* Reads the section keys specific to this front. Errors are recorded in the section.
     * free_options is also called after a failed read. */
    void *(*read_options)(struct config_section *s);
    void (*free_options)(void *options);

    int (*open)(const struct front_setup *setup, void **ret_state, struct err *e);
    void (*close)(void *state);
    /* The API now has this address. Adds further entries to the port file. May be NULL. */
    int (*announce)(
        void *state, const struct region *region, const char *url, json_t *ports, struct err *e);

    /* Makes an instance id in the provider's format, unique in the region and usable as a file
     * name. NULL for EC2's format. */
    region_id_fn make_id;

    /* The region has been advanced to now. A refused call, by a fault or not, is answered with its
     * own status. */
    void (*api)(
        const struct front_site *s, const struct front_request *r, struct front_reply *ret_reply);
    void (*api_error)(const struct front_site *s, const char *code, struct front_reply *ret_reply);
    void (*metadata)(
        const struct front_site *s, const struct front_request *r, struct front_reply *ret_reply);
    void (*metadata_error)(int status, struct front_reply *ret_reply);

    /* Another API of the same provider at its own address: a front without configuration, state and
     * metadata. side_state returns its state, owned by this front's state; NULL if it was not
     * configured. NULL if there is none. */
    const struct front *side;
    void *(*side_state)(void *state, int *ret_port);
};

extern const struct front ec2_front, gce_front, arm_front, lambda_front;

/* NULL-terminated; the first is the front of a configuration file without `providers`. */
extern const struct front *const fronts[];
const struct front *front_find(const char *name); /* NULL if unknown */

#endif
