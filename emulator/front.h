/* SPDX-License-Identifier: Apache-2.0
 *
 * What makes a region into one provider: how its API and the metadata service of its instances
 * speak. A front is a const struct of functions over a region and a state of the front's own; they
 * are pure but for open: a request in, status and bytes out. The sockets before them are
 * front_server.c's, the list of all of them is in fronts.c.
 */
#ifndef BELAY_EMULATOR_FRONT_H
#define BELAY_EMULATOR_FRONT_H

#include "emulator/region.h"

#define FRONT_HEADERS_MAX 64
#define FRONT_REPLY_HEADERS_MAX 8
#define FRONT_SECRET_BYTES 32

struct front_header {
    const char *name, *value;
};

struct front_request {
    const char *method;
    const char *path;   /* decoded, without the query */
    const char *target; /* path and query as sent */
    const struct front_header *headers;
    size_t n_headers;
    const void *body; /* none when a request that waits is asked again */
    size_t body_len;
    /* of a request that is asked again: what the reply to the first asking had; NULL: the first */
    const char *mark;
    bool is_last; /* it has waited for as long as it may: to be answered now */
};

/* in any case; NULL: absent */
const char *front_header(const struct front_request *r, const char *name);
/* what follows the '?'; "" */
const char *front_query(const struct front_request *r);

struct front_reply {
    int status;
    const char *content_type; /* static */
    struct {
        const char *name; /* static */
        char value[640];
    } headers[FRONT_REPLY_HEADERS_MAX];
    size_t n_headers;
    struct buf body; /* the caller's */
    /* > 0: there is nothing to say yet. The request is asked again after each change of the region,
     * and for the last time, with is_last, after so long. */
    int64_t wait_ms;
    char mark[40]; /* for the next asking */
    /* Of API calls. */
    char action[FAULT_NAME_MAX]; /* as events and the journal name it; "" until it is known */
    char request_id[64];         /* for the journal; "": none */
    bool is_noted;               /* goes into the journal though it succeeded */
};

void front_reply_header(struct front_reply *reply, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Where an answer comes from. */
struct front_site {
    struct region *region;
    void *state;       /* the front's own */
    struct wall now;   /* the region's time */
    struct wall clock; /* this machine's, for the dates in requests */
    /* The metadata service of: */
    struct instance *instance; /* NULL: the API */
    /* random, of this service: its tokens are worth nothing at another's */
    const unsigned char *secret;
};

/* A fault that refuses the next call of this action: its code, or throttle_code; NULL: none.
 * Borrowed from f. */
const char *front_refusal(
    struct region *r, const char *action, const char *throttle_code, struct fault *ret_fault);
/* The same for a call that may only be throttled. */
const char *front_throttled(struct region *r, const char *action, const char *throttle_code);

/* What a front is opened with. Borrowed until it is closed. */
struct front_place {
    struct region *region;
    const void *options; /* what read_options made; NULL: no section was read */
    const char *dir;     /* a directory for files that it gives to users */
    int64_t role_ttl_ms; /* of credentials that the metadata service gives */
    void (*console)(
        void *ctx, const struct instance *i, struct buf *out); /* what an instance printed so far */
    void *console_ctx;
};

struct config_section; /* config_section.h */

struct front {
    /* "aws": in the configuration, the journal, the catalogue of types */
    const char *name;
    const char *port_key;         /* of the API's address in the port file */
    const char *region, *account; /* usual names */
    /* the account's key in the configuration; NULL: it has none */
    const char *account_key;
    bool is_on_demand_only;             /* pools have no `spot` */
    const char *disk_type;              /* usual; NULL: there are no volumes here */
    int64_t notice_s;                   /* usual */
    int64_t role_ttl_ms;                /* usual */
    size_t body_max;                    /* bytes of an API request; more is refused with 413 */
    const char *garbage, *garbage_type; /* the cut-off reply of drop_reply */
    /* the code of a call that took effect and is answered with an error */
    const char *internal_error;

    /* The keys of its section that are its own. Errors are noted in the section. free_options takes
     * the result of a reading that failed too. */
    void *(*read_options)(struct config_section *s);
    void (*free_options)(void *options);

    int (*open)(const struct front_place *place, void **ret_state, struct err *e);
    void (*close)(void *state);
    /* The API has this address now. Adds to the port file what there is besides. NULL: nothing. */
    int (*announce)(
        void *state, const struct region *region, const char *url, json_t *ports, struct err *e);

    /* The provider's form of an instance's id, unique in the region, fit for the name of a file.
     * NULL: EC2's. */
    region_id_fn make_id;

    /* The region was advanced to now. A refused call, by fault or not, is answered with a status of
     * its own. */
    void (*api)(
        const struct front_site *s, const struct front_request *r, struct front_reply *ret_reply);
    void (*api_error)(const struct front_site *s, const char *code, struct front_reply *ret_reply);
    void (*metadata)(
        const struct front_site *s, const struct front_request *r, struct front_reply *ret_reply);
    void (*metadata_error)(int status, struct front_reply *ret_reply);

    /* Another API of the same provider with an address of its own: a front without configuration,
     * state and metadata. side_state is its state, owned by this front's; NULL: it was not asked
     * for. NULL: there is none. */
    const struct front *side;
    void *(*side_state)(void *state, int *ret_port);
};

extern const struct front ec2_front, gce_front, arm_front, lambda_front;

/* Ends with NULL; the first is the front of a configuration file without `providers`. */
extern const struct front *const fronts[];
const struct front *front_find(const char *name); /* NULL: there is none */

#endif
