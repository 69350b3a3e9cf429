/* SPDX-License-Identifier: Apache-2.0
 *
 * The Compute Engine API, v1 (and beta, for the one field that only it has), as functions: a
 * request in, status and JSON out. No I/O, no clock. Known fields without effect are accepted,
 * unknown ones are refused by name.
 */
#ifndef BELAY_EMULATOR_GCE_GCE_H
#define BELAY_EMULATOR_GCE_GCE_H

#include "base/json.h"
#include "emulator/form.h"
#include "emulator/front.h"
#include "emulator/gce/auth.h"

#define GCE_BODY_MAX (1u << 20)
#define GCE_NAME_MAX 64 /* bytes including the NUL, also below */
#define GCE_SEGMENTS_MAX 8
#define GCE_FAMILY_QUOTA "CPUS-PER-VM-FAMILY-per-project-region"
#define GCE_JSON_TYPE "application/json; charset=UTF-8"
#define GCE_LABELS_MAX 64
#define GCE_OPERATIONS_MAX 100000 /* kept; older ones are dropped */
#define GCE_QUOTAS_MAX 19
#define GCE_CPU_QUOTAS_MAX 32
#define GCE_URL "https://www.googleapis.com/compute/v1"
#define GCE_MINUTE_MS 60000

/* An operation begun by a call. A preemption's is not stored but derived from the instance. */
struct gce_operation {
    int64_t number;   /* 1, 2, ... */
    const char *type; /* "insert", "delete" */
    char zone[CLOUD_NAME_MAX];
    char target[GCE_NAME_MAX]; /* the instance's name */
    char request_id[37];       /* "" if none */
    char user[GCE_EMAIL_MAX];
    struct wall inserted_at;
    /* Done when this instance has booted, or is gone. NULL: the operation fails at: */
    const struct instance *instance;
    struct wall ends_at;
    char error[GCE_NAME_MAX]; /* code */
    char error_text[256];
};

/* Requests of one group in the minute that began at began_at. */
struct gce_rate {
    struct wall began_at;
    int64_t n;
};

enum gce_group { GCE_READ, GCE_MUTATE };

/* Concurrent GPUs. */
struct gce_quota {
    const char *name; /* static: "NVIDIA_T4_GPUS" */
    int64_t limit;
};

/* vCPUs as they are reported; launches are not limited by them. */
struct gce_cpu_quota {
    char name[32]; /* "CPUS", "N2_CPUS", "PREEMPTIBLE_CPUS" */
    int64_t limit;
};

/* A limit of the vCPUs of a family, only reported, by the Cloud Quotas API. */
struct gce_family_quota {
    char family[16]; /* "C4" */
    int64_t limit;
};

struct gce {
    struct gce_auth auth;
    int64_t rate_limit; /* requests of each group per minute */
    struct gce_rate rates[2];
    int64_t role_ttl_ms;
    struct gce_quota quotas[GCE_QUOTAS_MAX]; /* those configured */
    size_t n_quotas;
    struct gce_cpu_quota cpu_quotas[GCE_CPU_QUOTAS_MAX]; /* those configured */
    size_t n_cpu_quotas;
    struct gce_family_quota family_quotas[GCE_CPU_QUOTAS_MAX]; /* those configured */
    size_t n_family_quotas;
    struct gce_operation *operations; /* by number */
    size_t n_operations;
    int64_t last_operation;
    char *key_files[GCE_ACCOUNTS_MAX]; /* where each account's key is written; NULL if it is not */
    void (*console)(void *ctx, const struct instance *i, struct buf *out); /* may be NULL */
    void *console_ctx;
};

/* One call in progress. */
struct gce_call {
    const struct front_site *site;
    const struct front_request *request;
    struct front_reply *reply;
    struct region *region;
    struct gce *gce;
    struct form query;
    const struct gce_account *caller;
    bool is_beta;
    const char *zone, *name; /* from the path; "" if absent */
    char *path;              /* split into segments */
};

/* The entry point. Answers every request. */
void gce_api(
    const struct front_site *s, const struct front_request *r, struct front_reply *ret_reply);

/* An error by its code, such as "rateLimitExceeded" in an error's `reason`, with its status. */
void gce_api_error(const struct front_site *s, const char *code, struct front_reply *ret_reply);

/* ---- for the methods, in gce_*.c ---- */

/* Turns the reply into an error. Returns -1, to allow `return gce_fail(...)`. */
int gce_fail(struct gce_call *c, int status, const char *reason, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

void gce_reply_json(struct gce_call *c, json_t *value); /* takes over value */

/* -1 with the error reply set. */
int gce_check_zone(struct gce_call *c);
int gce_query_end(struct gce_call *c); /* refuses unread parameters */
int gce_read_request_id(struct gce_call *c, char out[37]);

/* Entries of a list, each with its scope ("zones/Z") and its sort key. */
struct gce_item {
    char key[CLOUD_NAME_MAX + 2 * GCE_NAME_MAX];
    char zone[CLOUD_NAME_MAX];
    json_t *value;
};
struct gce_items {
    struct gce_item *list;
    size_t n;
};
/* takes over value */
void gce_items_add(struct gce_items *items, const char *zone, const char *name, json_t *value);
/* Replies with the page that the query selects (filter, maxResults, pageToken, orderBy): a list of
 * this kind, "compute#instanceList", or, for all zones, an aggregated one whose zones have
 * `member`. Empties items. */
int gce_reply_list(struct gce_call *c, struct gce_items *items, const char *kind);
int gce_reply_aggregated(
    struct gce_call *c, struct gce_items *items, const char *kind, const char *member);

struct gce_operation *gce_operation_begin(struct gce_call *c, const char *type, const char *name);
struct gce_operation *gce_operation_find_request(struct gce_call *c, const char *request_id);
int gce_reply_operation(struct gce_call *c, const struct gce_operation *op);

void gce_time(json_t *o, const char *key, struct wall w); /* RFC 3339; omitted if not set */
json_t *gce_zone_url(const struct region *r, const char *zone);
json_t *gce_instance_url(const struct region *r, const char *zone, const char *name);

/* ---- GPUs, in gce/gpus.c ---- */

struct gce_gpus {
    const struct gce_gpu_model *model; /* NULL, with n = 0: none */
    const char *accelerator;           /* "nvidia-tesla-t4"; static */
    int64_t n;
};
struct gce_gpus gce_gpus_of(const char *type);
int gce_machine_len(const char *type); /* length of the machine's name at the start of the type */

const char *gce_quota_name(size_t k); /* names of all possible quotas; static; NULL at the end */

/* ERR_QUOTA, with Compute Engine's message: another instance of the spec's type would exceed the
 * GPU quota. */
int gce_gpus_check_quota(const struct gce_call *c, const struct launch_spec *spec, struct err *e);

/* Concurrent GPUs of a quota; that of all regions counts all. */
int64_t gce_gpus_used(const struct gce_call *c, const struct gce_quota *quota);

/* The methods: return 0, or -1 with an error reply. */
int gce_instances_insert(struct gce_call *c);
int gce_regions_get(struct gce_call *c); /* gce/quotas.c, with their quotas */
int gce_projects_get(struct gce_call *c);
int gce_family_quota_get(struct gce_call *c); /* of Cloud Quotas: CPUS_PER_VM_FAMILY */
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

/* Parses the body of an insert. The caller frees spec in any case. -1 with the error reply set. */
int gce_read_instance(struct gce_call *c, struct launch_spec *spec);

/* Adds a disk of an insert; the spec already has its name. ERR_INVALID. */
int gce_add_disk(struct launch_spec *spec, const json_t *disk, struct err *e);

/* Metadata, in gce/metadata.c. */
void gce_metadata(
    const struct front_site *s, const struct front_request *r, struct front_reply *ret_reply);
void gce_metadata_error(int status, struct front_reply *ret_reply);

#endif
