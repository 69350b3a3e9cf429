/* SPDX-License-Identifier: Apache-2.0
 *
 * Azure Resource Manager as a function of a region: virtual machines with their network interfaces
 * and disks, operations that complete later, the token endpoint and the retail prices. Request in,
 * status, headers and JSON out. No I/O, no clock.
 *
 * A virtual machine is a resource with a life of its own, and an instance of the region stands
 * behind it while it runs. What a call finds is brought up to date first (arm_advance), so nothing
 * here needs a timer.
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
#define ARM_OPERATIONS_MAX 10000 /* remembered; the oldest that are over are forgotten */
#define ARM_RESOURCES_MAX 10000  /* in the subscription; more are refused */

/* What the subscription has. NULL-terminated lists; NULL: anything of the right form is
 * accepted. */
struct arm_account {
    const char *subscription; /* its id */
    const char *const *groups;
    const char *const *images;  /* resource ids, or PUBLISHER:OFFER:SKU:VERSION */
    const char *const *subnets; /* resource ids */
    int64_t spot_cores;         /* the quota lowPriorityCores; 0: none */
    int page;                   /* entries on a page of a listing, 1 .. 1000 */
    int retry_after_s;          /* what operations under way say */
    int64_t nic_reserved_ms;    /* an interface whose machine was refused is kept for it so long */
};

enum arm_kind { ARM_KIND_VM, ARM_KIND_NIC, ARM_KIND_DISK };
enum arm_provisioning { ARM_CREATING, ARM_SUCCEEDED, ARM_FAILED, ARM_DELETING };

struct arm_operation {
    char id[ARM_UUID_MAX];
    bool is_delete;
    const char *status; /* "InProgress", "Succeeded", "Failed", "Canceled" */
    char code[64];      /* of the error */
    char text[512];
    struct wall start, end; /* end: WALL_NONE while it is under way */
};

struct arm_resource {
    enum arm_kind kind;
    int64_t number; /* order of creation */
    char group[ARM_GROUP_MAX], name[ARM_RESOURCE_NAME_MAX];
    /* location, zones, tags, identity, properties as they are shown, but for what changes */
    json_t *body;
    struct wall made;

    /* of a network interface or a disk */
    struct arm_resource *owner; /* the virtual machine that it is attached to; NULL: none */
    bool goes_with_owner;       /* deleteOption Delete */
    struct wall reserved_until; /* for the machine that was refused with it; WALL_NONE: it is not */
    char reserved_for[ARM_RESOURCE_NAME_MAX];
    struct wall detached; /* WALL_NONE: never, or it is attached */

    char uuid[ARM_UUID_MAX];

    /* of a virtual machine */
    enum arm_provisioning state;
    struct arm_operation *operation; /* the last one; NULL once it is over */
    struct instance *instance;       /* NULL: none (yet, any more) */
    bool is_deallocated;
    struct wall fails_at; /* a create that was accepted and will fail; WALL_NONE: none */
    char fails_with[64];
    json_t *asked;        /* the body it was made with, the custom data as its hash */
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
    /* The console output of an instance so far, appended to out. NULL: there is none. */
    void (*console)(void *ctx, const struct instance *i, struct buf *out);
    void *console_ctx;
};

/* Everything is borrowed until deinit. */
void arm_init(
    struct arm *a, struct region *r, const struct arm_account *account, struct arm_auth *auth);
/* The region's volumes, as disks. */
void arm_add_volumes(struct arm *a);
void arm_deinit(struct arm *a);

/* Advances the region, and draws from it what has become of machines and operations. */
void arm_advance(struct arm *a, struct wall now);

/* The virtual machine that this instance stands behind; NULL: none (any more). */
struct arm_resource *arm_find_instance(const struct arm *a, const struct instance *i);

/* "/subscriptions/.../virtualMachines/NAME", appended. */
void arm_resource_id(const struct arm *a, const struct arm_resource *v, struct buf *out);

/* What exists, for GET /state: [{"id": ..., "state": ...}]. A new array. */
json_t *arm_state(struct arm *a, struct wall now);

/* ---- Calls ---- */

struct arm_request {
    const char *method;
    const char *path;          /* decoded */
    const char *query;         /* as sent, without '?'; "" if none */
    const char *base;          /* "http://127.0.0.1:4711", for links */
    const char *authorization; /* the header; NULL: absent */
    const void *body;
    size_t body_len;
};

#define ARM_HEADERS_MAX 8

struct arm_reply {
    int status;
    char request_id[ARM_UUID_MAX];
    json_t *body; /* NULL: none */
    struct {
        const char *name;
        char *value;
    } headers[ARM_HEADERS_MAX];
    size_t n_headers;
};

void arm_call(
    struct arm *a, const struct arm_request *q, struct wall now, struct arm_reply *ret_reply);
void arm_reply_deinit(struct arm_reply *reply);
/* The body's text, NULL without one. To be freed. */
char *arm_reply_text(const struct arm_reply *reply);

/* What faults call this request: "virtualMachines/write", "operations/read", "token", ...; "?" if
 * it is none of ours. */
#define ARM_ACTION_MAX 64
void arm_action(const struct arm_request *q, char out[ARM_ACTION_MAX]);
/* The action of creates that are accepted and fail later. */
#define ARM_ACTION_LATER "virtualMachines/write/operation"

/* The storage that keeps consoles' logs, of which retrieveBootDiagnosticsData gives URLs: GET with
 * a signature in the query, and without a token. False: the path is none of it. ret_body is the
 * caller's; *ret_type static. */
#define ARM_ACTION_BLOB "bootdiagnostics/read"
bool arm_console_is_blob(const struct arm_request *q);
int arm_console_blob(struct arm *a, const struct arm_request *q, struct wall now,
    struct buf *ret_body, const char **ret_type); /* the status */

/* An error reply by itself: with Azure's HTTP status for the code, and its message if text is
 * NULL. */
void arm_error(struct arm *a, const char *code, const char *text, struct arm_reply *ret_reply);

#endif
