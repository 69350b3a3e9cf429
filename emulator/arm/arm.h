/* SPDX-License-Identifier: Apache-2.0
 *
 * Azure Resource Manager as a function of a region: virtual machines with their network interfaces
 * and disks, operations that complete later, the token endpoint and the retail prices. A request
 * in; status, headers and JSON out. No I/O, no clock.
 *
 * A virtual machine is a resource with a life of its own, backed by an instance of the region while
 * it runs. Each call first updates the state (arm_advance), so nothing here needs a timer.
 */
#ifndef BELAY_EMULATOR_ARM_ARM_H
#define BELAY_EMULATOR_ARM_ARM_H

#include "base/json.h"
#include "emulator/arm/auth.h"
#include "emulator/form.h"
#include "emulator/region.h"

#define ARM_BODY_MAX (1u << 20)
#define ARM_RESOURCE_NAME_MAX 81 /* of a resource, bytes including the NUL */
#define ARM_GROUP_MAX 91         /* of a resource group */
#define ARM_UUID_MAX 37
#define ARM_OPERATIONS_MAX 10000 /* kept; the oldest finished ones are dropped */
#define ARM_RESOURCES_MAX 10000  /* in the subscription; more are refused */

/* The subscription's resources. NULL-terminated lists; NULL: anything well-formed is accepted. */
struct arm_account {
    const char *subscription; /* its id */
    const char *const *groups;
    const char *const *images;  /* resource ids, or PUBLISHER:OFFER:SKU:VERSION */
    const char *const *subnets; /* resource ids */
    int64_t spot_cores;         /* the quota lowPriorityCores; 0 = none */
    int page;                   /* entries on a page of a listing, 1 .. 1000 */
    int retry_after_s;          /* Retry-After of operations in progress */
    int64_t nic_reserved_ms;    /* how long an interface stays reserved for a refused machine */
};

enum arm_kind { ARM_KIND_VM, ARM_KIND_NIC, ARM_KIND_DISK };
enum arm_provisioning { ARM_CREATING, ARM_SUCCEEDED, ARM_FAILED, ARM_DELETING };

struct arm_operation {
    char id[ARM_UUID_MAX];
    bool is_delete;
    const char *status; /* "InProgress", "Succeeded", "Failed", "Canceled" */
    char code[64];      /* of the error */
    char text[512];
    struct wall start, end; /* end: WALL_NONE while in progress */
};

struct arm_resource {
    enum arm_kind kind;
    int64_t number; /* order of creation */
    char group[ARM_GROUP_MAX], name[ARM_RESOURCE_NAME_MAX];
    /* the JSON as shown (location, zones, tags, identity, properties), except for what changes */
    json_t *body;
    struct wall made;

    /* for a network interface or a disk */
    struct arm_resource *owner; /* the virtual machine it is attached to; may be NULL */
    bool is_deleted_with_owner; /* deleteOption Delete */
    /* for the machine that was refused with it; WALL_NONE if not reserved */
    struct wall reserved_until;
    char reserved_for[ARM_RESOURCE_NAME_MAX];
    struct wall detached; /* WALL_NONE if never, or attached */

    char uuid[ARM_UUID_MAX];

    /* for a virtual machine */
    enum arm_provisioning state;
    struct arm_operation *operation; /* the last one; NULL once it is over */
    struct instance *instance;       /* may be NULL (not yet, or no longer) */
    bool is_deallocated;
    struct wall fails_at; /* when an accepted create will fail; WALL_NONE if it will not */
    char fails_with[64];
    json_t *request;      /* the body of its creation, with custom data as a hash */
    struct buf user_data; /* properties.userData, as given */
    bool has_identity;
    char client_id[ARM_UUID_MAX]; /* of its identity */
};

/* A token bucket in thousandths. */
struct arm_bucket {
    int64_t left;
    struct wall at;
};

struct arm {
    struct region *region;
    const struct arm_account *account;
    struct arm_auth *auth;
    struct arm_resource **resources; /* by creation */
    size_t n_resources;
    struct arm_operation **operations; /* by start */
    size_t n_operations;
    int64_t last_number;
    struct arm_bucket buckets[3];
    /* Appends the console output of an instance so far to out. May be NULL. */
    void (*console)(void *ctx, const struct instance *i, struct buf *out);
    void *console_ctx;
};

/* Everything is borrowed until deinit. */
void arm_init(
    struct arm *a, struct region *r, const struct arm_account *account, struct arm_auth *auth);
/* The region's volumes, as disks. */
void arm_add_volumes(struct arm *a);
void arm_deinit(struct arm *a);

/* Advances the region, and updates machines and operations from it. */
void arm_advance(struct arm *a, struct wall now);

/* The virtual machine backed by this instance; NULL if none (any more). */
struct arm_resource *arm_find_instance(const struct arm *a, const struct instance *i);

/* Appends "/subscriptions/.../virtualMachines/NAME". */
void arm_resource_id(const struct arm *a, const struct arm_resource *v, struct buf *out);

/* All resources, for GET /state: [{"id": ..., "state": ...}]. A new array. */
json_t *arm_state(struct arm *a, struct wall now);

/* ---- Calls ---- */

struct arm_request {
    const char *method;
    const char *path;          /* decoded */
    const char *query;         /* as sent, without '?'; "" if none */
    const char *base;          /* "http://127.0.0.1:4711", for links */
    const char *authorization; /* the header; NULL if absent */
    const void *body;
    size_t body_len;
};

#define ARM_HEADERS_MAX 8

struct arm_reply {
    int status;
    char request_id[ARM_UUID_MAX];
    json_t *body; /* may be NULL */
    struct {
        const char *name;
        char *value;
    } headers[ARM_HEADERS_MAX];
    size_t n_headers;
};

void arm_call(
    struct arm *a, const struct arm_request *q, struct wall now, struct arm_reply *ret_reply);
void arm_reply_deinit(struct arm_reply *reply);
/* The body's text, NULL if there is none. The caller frees it. */
char *arm_reply_text(const struct arm_reply *reply);

/* The action name of a request for faults: "virtualMachines/write", "operations/read", "token",
 * ...; "?" if it is not ours. */
#define ARM_ACTION_MAX 64
void arm_action(const struct arm_request *q, char out[ARM_ACTION_MAX]);
/* The action of creates that are accepted and fail later. */
#define ARM_ACTION_LATER "virtualMachines/write/operation"

/* The storage of console logs, whose URLs retrieveBootDiagnosticsData returns: GET with a signature
 * in the query, without a token. False if the path is not there. The caller frees ret_body;
 * *ret_type is static. */
#define ARM_ACTION_BLOB "bootdiagnostics/read"
bool arm_console_is_blob(const struct arm_request *q);
int arm_console_blob(struct arm *a, const struct arm_request *q, struct wall now,
    struct buf *ret_body, const char **ret_type); /* returns the status */

/* An error reply alone: with Azure's HTTP status for the code, and its message if text is NULL. */
void arm_error(struct arm *a, const char *code, const char *text, struct arm_reply *ret_reply);

#endif
