/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the files of arm/; private to them.
 */
#ifndef BELAY_EMULATOR_ARM_PARTS_H
#define BELAY_EMULATOR_ARM_PARTS_H

#include "emulator/arm/arm.h"

#define ARM_SEGMENTS_MAX 12
#define ARM_TAGS_MAX 50
#define ARM_ID_MAX 640

/* One call in progress. */
struct arm_call {
    struct arm *arm;
    const struct arm_request *q;
    struct wall now;
    struct arm_reply *reply;
    struct form form; /* the query */
    json_t *body;     /* NULL if none was sent */
    char *text;       /* the path, split into: */
    char *segments[ARM_SEGMENTS_MAX];
    size_t n_segments;
    const char *group, *name; /* from the path; may be NULL */
};

/* ---- Replies (arm/reply.c) ---- */

/* Turns the reply into an error. Returns -1, to allow `return arm_fail(...)`. */
int arm_fail(struct arm_call *c, const char *code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* name is borrowed forever, value is copied. */
void arm_add_header(struct arm_reply *reply, const char *name, const char *value);
void arm_add_retry_after(struct arm_reply *reply, int64_t seconds);
/* The usual message of a code; the code itself if it has none. */
const char *arm_usual_text(const char *code);
void arm_make_uuid(struct prng *p, char out[ARM_UUID_MAX]);

/* Replies with a page of a listing. list: all of it, taken over. The reply's body is {"value":
 * [...], "nextLink": ...}. */
int arm_reply_page(struct arm_call *c, json_t *list);

/* Adds the URL for polling the operation (arm/api.c). */
void arm_add_operation_headers(struct arm_call *c, const struct arm_operation *op);

/* ---- Resources (arm.c) ---- */

struct arm_resource *arm_find(
    const struct arm *a, enum arm_kind kind, const char *group, const char *name);
/* By a resource id, case-insensitive; NULL if unknown, or of another kind. */
struct arm_resource *arm_find_id(const struct arm *a, enum arm_kind kind, const char *id);
/* body is taken over. */
struct arm_resource *arm_add(struct arm *a, enum arm_kind kind, const char *group, const char *name,
    json_t *body, struct wall now);
/* Attached resources are removed or detached, as their deleteOption says. */
void arm_remove(struct arm *a, struct arm_resource *v);
const char *arm_type(enum arm_kind kind); /* "Microsoft.Compute/virtualMachines" */

struct arm_operation *arm_start_operation(struct arm *a, bool is_delete, struct wall now);
void arm_end_operation(
    struct arm_operation *op, const char *status, const char *code, struct wall now);
struct arm_operation *arm_find_operation(const struct arm *a, const char *id);

/* ---- Bodies (arm/body.c): paths are dotted, "properties.hardwareProfile.vmSize" ---- */

const json_t *arm_at(const json_t *v, const char *path); /* NULL if absent or null */
const char *arm_str_at(const json_t *v, const char *path, const char *fallback);
/* Returns 0, or -1 with the refusal: absent (when required), of another type, empty or longer than
 * max bytes. */
int arm_need_str(struct arm_call *c, const char *path, size_t max, const char **ret_text);
/* *ret_text is NULL if absent */
int arm_may_str(struct arm_call *c, const char *path, size_t max, const char **ret_text);
int arm_may_choice(
    struct arm_call *c, const char *path, const char *const *names, int fallback, int *ret_choice);
/* Checks that the object at path has only these members; it may be absent. */
int arm_check_members(
    struct arm_call *c, const char *path, const json_t *value, const char *const *names);
int arm_check_tags(struct arm_call *c, const json_t *tags);
int arm_check_location(struct arm_call *c);
int arm_check_resource_name(struct arm_call *c, size_t max);
/* "/subscriptions/S/resourceGroups/G/providers/TYPE/NAME" in this subscription. */
bool arm_is_id(const struct arm *a, const char *id, const char *type);
bool arm_is_subnet(const struct arm *a, const char *id); /* ... virtualNetworks/V/subnets/NAME */

/* ---- Calls: return 0, or -1 with an error reply ---- */

int arm_put_vm(struct arm_call *c);
int arm_delete_vm(struct arm_call *c);
int arm_evict_vm(struct arm_call *c);
int arm_boot_diagnostics(struct arm_call *c); /* console.c */
int arm_put_nic(struct arm_call *c);
int arm_delete_part(struct arm_call *c, enum arm_kind kind); /* a network interface or a disk */
/* Refuses a network interface reserved for a machine other than `name` (NULL: for any). */
int arm_check_reserved(struct arm_call *c, const struct arm_resource *nic, const char *name);

int arm_get(struct arm_call *c, enum arm_kind kind);
int arm_get_instance_view(struct arm_call *c);
int arm_list(struct arm_call *c, enum arm_kind kind);
int arm_list_all(struct arm_call *c); /* GET /subscriptions/S/resources */
int arm_list_prices(struct arm_call *c);
int arm_list_usages(struct arm_call *c); /* usages.c */
/* The cores of a size, also of one that the catalogue does not know. */
int64_t arm_cores_of(const char *type);

/* The resource's JSON; expand: with the instance view. A new object. */
json_t *arm_show(const struct arm *a, const struct arm_resource *v, bool expand);
/* "running", "stopped", ...; NULL if none yet */
const char *arm_power_state(const struct arm_resource *vm);

/* The checks of a create (arm/vm_read.c): converts c->body to a launch. */
struct arm_vm_params {
    struct launch_spec spec;
    bool has_zone;
    const char *computer_name;
    struct arm_resource *nic; /* existing, to be attached; NULL to create one */
    bool keeps_nic, keeps_disk;
    struct buf user_data;
};
int arm_read_vm_params(struct arm_call *c, struct arm_vm_params *w);
void arm_vm_params_deinit(struct arm_vm_params *w);

#endif
