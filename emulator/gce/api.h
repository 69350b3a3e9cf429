/* SPDX-License-Identifier: Apache-2.0
 *
 * The Compute Engine API, v1 (and beta, for the one field that is there alone), as functions: a
 * request in, status and JSON out. No I/O, no clock. What has no effect here is accepted, what is
 * not known is refused by name.
 */
#ifndef BELAY_EMULATOR_GCE_API_H
#define BELAY_EMULATOR_GCE_API_H

#include "base/json.h"
#include "emulator/form.h"
#include "emulator/front.h"
#include "emulator/gce/auth.h"

#define GCE_BODY_MAX (1u << 20)
#define GCE_NAME_MAX 64 /* bytes including the NUL, as below */
#define GCE_SEGMENTS_MAX 8
#define GCE_JSON_TYPE "application/json; charset=UTF-8"
#define GCE_LABELS_MAX 64
#define GCE_OPERATIONS_MAX 100000 /* kept; older ones are forgotten */
#define GCE_QUOTAS_MAX 19
#define GCE_URL "https://www.googleapis.com/compute/v1"
#define GCE_MINUTE_MS 60000

/* One that a call began. A preemption's is not stored: it is seen from the instance. */
struct gce_operation {
    int64_t number;   /* 1, 2, ... */
    const char *type; /* "insert", "delete" */
    char zone[CLOUD_NAME_MAX];
    char target[GCE_NAME_MAX]; /* the instance's name */
    char request_id[37];       /* "": none */
    char user[GCE_EMAIL_MAX];
    struct wall inserted_at;
    /* It is done when this instance has booted, or is gone. NULL: it fails, at: */
    const struct instance *instance;
    struct wall ends_at;
    char error[GCE_NAME_MAX]; /* code */
    char error_text[256];
};

/* Requests of one kind in the minute that began at. */
struct gce_rate {
    struct wall began_at;
    int64_t n;
};

enum gce_group { GCE_READ, GCE_MUTATE };

/* Of GPUs that run at a time. */
struct gce_quota {
    const char *name; /* static: "NVIDIA_T4_GPUS" */
    int64_t limit;
};

struct gce {
    struct gce_auth auth;
    int64_t rate_limit; /* requests of each group a minute */
    struct gce_rate rates[2];
    int64_t role_ttl_ms;
    struct gce_quota quotas[GCE_QUOTAS_MAX]; /* those that there are */
    size_t n_quotas;
    struct gce_operation *operations; /* by number */
    size_t n_operations;
    int64_t last_operation;
    char *key_files[GCE_ACCOUNTS_MAX]; /* where each account's key is written; NULL: it is not */
    void (*console)(void *ctx, const struct instance *i, struct buf *out); /* NULL: there is none */
    void *console_ctx;
};

/* One call under way. */
struct gce_call {
    const struct front_site *site;
    const struct front_request *request;
    struct front_reply *reply;
    struct region *region;
    struct gce *gce;
    struct form query;
    const struct gce_account *caller;
    bool is_beta;
    const char *zone, *name; /* of the path; "" where it has none */
    char *path;              /* its segments, cut */
};

/* The whole of it. An answer for every request. */
void gce_api(
    const struct front_site *s, const struct front_request *r, struct front_reply *ret_reply);

/* An error by its code: as "rateLimitExceeded", as in an error's `reason`, with the status that it
 * comes with. */
void gce_api_error(const struct front_site *s, const char *code, struct front_reply *ret_reply);

/* ---- for the methods, in gce_*.c ---- */

/* Turns the reply into an error. Returns -1, so that `return gce_fail(...)` reads well. */
int gce_fail(struct gce_call *c, int status, const char *reason, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

void gce_reply_json(struct gce_call *c, json_t *value); /* taken */

/* -1 with the error reply in place. */
int gce_check_zone(struct gce_call *c);
int gce_query_end(struct gce_call *c); /* refuses parameters that nobody asked for */
int gce_read_request_id(struct gce_call *c, char out[37]);

/* What a list shows: each with the scope ("zones/Z") and the name that it is sorted by. */
struct gce_item {
    char key[CLOUD_NAME_MAX + 2 * GCE_NAME_MAX];
    char zone[CLOUD_NAME_MAX];
    json_t *value;
};
struct gce_items {
    struct gce_item *list;
    size_t n;
};
/* taken */
void gce_items_add(struct gce_items *items, const char *zone, const char *name, json_t *value);
/* Answers with the page of them that the query asks for (filter, maxResults, pageToken, orderBy): a
 * list of this kind, "compute#instanceList", or, in every zone, an aggregated one whose zones have
 * `member`. Empties items. */
int gce_reply_list(struct gce_call *c, struct gce_items *items, const char *kind);
int gce_reply_aggregated(
    struct gce_call *c, struct gce_items *items, const char *kind, const char *member);

struct gce_operation *gce_operation_begin(struct gce_call *c, const char *type, const char *name);
struct gce_operation *gce_operation_find_request(struct gce_call *c, const char *request_id);
int gce_reply_operation(struct gce_call *c, const struct gce_operation *op);

void gce_time(json_t *o, const char *key, struct wall w); /* RFC 3339; nothing if it is not set */
json_t *gce_zone_url(const struct region *r, const char *zone);
json_t *gce_instance_url(const struct region *r, const char *zone, const char *name);

/* ---- GPUs, in gce/gpus.c ---- */

struct gce_gpus {
    const struct gce_gpu_model *model; /* NULL, and n is 0: none */
    const char *accelerator;           /* "nvidia-tesla-t4"; static */
    int64_t n;
};
struct gce_gpus gce_gpus_of(const char *type);
int gce_machine_len(const char *type); /* of the machine's name, which the type begins with */

const char *gce_quota_name(size_t k); /* of all that there can be; static; NULL: no more */

/* ERR_QUOTA, in Compute Engine's words: one more of the spec's type has too many GPUs. */
int gce_gpus_check_quota(const struct gce_call *c, const struct launch_spec *spec, struct err *e);

/* The methods: 0, or -1 with an error reply. */
int gce_instances_insert(struct gce_call *c);
int gce_instances_get(struct gce_call *c);
int gce_instances_serial_port(struct gce_call *c);
int gce_instances_delete(struct gce_call *c);
int gce_instances_list(struct gce_call *c);
int gce_instances_aggregated(struct gce_call *c);
int gce_disks_aggregated(struct gce_call *c);
int gce_operations_get(struct gce_call *c);
int gce_operations_wait(struct gce_call *c);
int gce_operations_list(struct gce_call *c);
int gce_operations_aggregated(struct gce_call *c);
int gce_zones_list(struct gce_call *c);

/* The body of an insert. spec is the caller's in any case. -1 with the error reply in place. */
int gce_read_instance(struct gce_call *c, struct launch_spec *spec);

/* One of the disks of an insert; the spec has its name. ERR_INVALID. */
int gce_add_disk(struct launch_spec *spec, const json_t *disk, struct err *e);

/* Metadata, in gce/metadata.c. */
void gce_metadata(
    const struct front_site *s, const struct front_request *r, struct front_reply *ret_reply);
void gce_metadata_error(int status, struct front_reply *ret_reply);

#endif
