/* SPDX-License-Identifier: Apache-2.0
 *
 * Resources as Azure shows them: single, with instance view, in lists.
 */
#include "base/mem.h"
#include "base/str.h"
#include "emulator/arm/filter.h"
#include "emulator/arm/parts.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *const state_names[] = {"Creating", "Succeeded", "Failed", "Deleting"};

const char *arm_power_state(const struct arm_resource *vm)
{
    if (vm->is_deallocated)
        return "deallocated";
    if (!vm->instance)
        return NULL;
    switch (vm->instance->state) {
    case INSTANCE_PENDING:
        return "starting";
    case INSTANCE_RUNNING:
        return "running";
    case INSTANCE_SHUTTING_DOWN:
    case INSTANCE_STOPPING:
        return "stopping";
    default:
        return "stopped";
    }
}

static void set_iso(json_t *o, const char *key, struct wall w)
{
    char iso[TIME_ISO_MAX];
    time_format_iso(w, iso);
    json_object_set_new(o, key, json_string(iso));
}

static void add_status(json_t *list, const char *kind, const char *state, const char *shown,
    bool is_error, struct wall at)
{
    json_t *o = json_object();
    char *code = mem_printf("%s/%s", kind, state);
    json_object_set_new(o, "code", json_string(code));
    json_object_set_new(o, "level", json_string(is_error ? "Error" : "Info"));
    json_object_set_new(o, "displayStatus", json_string(shown));
    if (wall_is_set(at))
        set_iso(o, "time", at);
    json_array_append_new(list, o);
    free(code);
}

static json_t *show_view(const struct arm_resource *vm)
{
    static const char *const states[] = {"creating", "succeeded", "failed", "deleting"};
    static const char *const shown[] = {
        "Creating", "Provisioning succeeded", "Provisioning failed", "Deleting"};
    json_t *o = json_object(), *statuses = json_array();
    const char *power = arm_power_state(vm);
    char *failed = vm->state == ARM_FAILED ? mem_printf("failed/%s", vm->fails_with) : NULL;
    add_status(statuses, "ProvisioningState", failed ? failed : states[vm->state], shown[vm->state],
        failed != NULL, vm->made);
    if (power) {
        char *text = mem_printf("VM %s", power);
        add_status(statuses, "PowerState", power, text, false, WALL_NONE);
        free(text);
    }
    json_object_set_new(o, "statuses", statuses);
    free(failed);
    return o;
}

static void show_owner(
    const struct arm *a, const struct arm_resource *v, json_t *o, json_t *properties)
{
    struct buf id = {0};
    if (v->owner)
        arm_resource_id(a, v->owner, &id);
    if (v->kind == ARM_KIND_DISK) {
        json_object_set_new(
            properties, "diskState", json_string(v->owner ? "Attached" : "Unattached"));
        json_object_set_new(properties, "uniqueId", json_string(v->uuid));
        set_iso(properties, "LastOwnershipUpdateTime",
            wall_is_set(v->detached) ? v->detached : v->made);
        if (v->owner)
            json_object_set_new(o, "managedBy", json_text(buf_str(&id)));
    } else if (v->owner) {
        json_t *ref = json_object();
        json_object_set_new(ref, "id", json_text(buf_str(&id)));
        json_object_set_new(properties, "virtualMachine", ref);
    }
    buf_deinit(&id);
}

static void show_address(const struct arm_resource *v, json_t *properties)
{
    json_t *ip = json_object_get(
        json_array_get(json_object_get(properties, "ipConfigurations"), 0), "properties");
    char text[16];
    snprintf(
        text, sizeof(text), "10.128.%d.%d", (int)(v->number >> 8 & 0xff), (int)(v->number & 0xff));
    bool is_up = v->owner && v->owner->instance;
    if (json_is_object(ip))
        json_object_set_new(
            ip, "privateIPAddress", json_string(is_up ? v->owner->instance->private_ip : text));
}

json_t *arm_show(const struct arm *a, const struct arm_resource *v, bool expand)
{
    json_t *o = json_object(), *body = json_deep_copy(v->body);
    struct buf id = {0};
    arm_resource_id(a, v, &id);
    json_object_set_new(o, "id", json_text(buf_str(&id)));
    json_object_set_new(o, "name", json_text(v->name));
    json_object_set_new(o, "type", json_string(arm_type(v->kind)));
    json_object_update(o, body);
    json_decref(body);
    buf_deinit(&id);
    json_t *properties = json_object_get(o, "properties");
    json_object_set_new(properties, "provisioningState",
        json_string(state_names[v->kind == ARM_KIND_VM ? v->state : ARM_SUCCEEDED]));
    set_iso(properties, "timeCreated", v->made);
    if (v->kind != ARM_KIND_VM) {
        show_owner(a, v, o, properties);
        if (v->kind == ARM_KIND_NIC)
            show_address(v, properties);
        return o;
    }
    json_object_set_new(properties, "vmId", json_string(v->uuid));
    if (v->has_identity && json_is_object(json_object_get(o, "identity"))) {
        json_object_set_new(
            json_object_get(o, "identity"), "principalId", json_string(v->client_id));
        json_object_set_new(json_object_get(o, "identity"), "tenantId", json_text(a->auth->tenant));
    }
    if (expand)
        json_object_set_new(properties, "instanceView", show_view(v));
    return o;
}

/* ---- Calls ---- */

static int not_found(struct arm_call *c, enum arm_kind kind)
{
    return arm_fail(c, "ResourceNotFound",
        "The Resource '%s/%.80s' under resource group '%s' was not found. For more details please "
        "go to https://aka.ms/ARMResourceNotFoundFix",
        arm_type(kind), c->name, c->group);
}

/* $expand and statusOnly; -1 with the refusal. */
static int read_expand(struct arm_call *c, bool *ret_view, bool *ret_user_data)
{
    const char *expand = form_get(&c->form, "$expand");
    *ret_user_data = expand && strcasecmp(expand, "userData") == 0;
    *ret_view = (expand && strcasecmp(expand, "instanceView") == 0) ||
                str_eq(form_get(&c->form, "statusOnly"), "true");
    if (expand && expand[0] && !*ret_view && !*ret_user_data)
        return arm_fail(
            c, "InvalidParameter", "The value '%.40s' of parameter '$expand' is invalid.", expand);
    return 0;
}

int arm_get(struct arm_call *c, enum arm_kind kind)
{
    const struct arm_resource *v = arm_find(c->arm, kind, c->group, c->name);
    bool has_view, has_user_data;
    if (read_expand(c, &has_view, &has_user_data) < 0)
        return -1;
    if (!v)
        return not_found(c, kind);
    c->reply->body = arm_show(c->arm, v, has_view);
    if (has_user_data && v->user_data.len > 0)
        json_object_set_new(json_object_get(c->reply->body, "properties"), "userData",
            json_text(buf_str(&v->user_data)));
    return 0;
}

int arm_get_instance_view(struct arm_call *c)
{
    const struct arm_resource *v = arm_find(c->arm, ARM_KIND_VM, c->group, c->name);
    if (!v)
        return not_found(c, ARM_KIND_VM);
    c->reply->body = show_view(v);
    return 0;
}

/* Listings lag. */
static bool is_listed(const struct arm_call *c, const struct arm_resource *v)
{
    return c->now.ms >= v->made.ms + c->arm->region->o->consistency_delay_ms &&
           (!c->group || strcasecmp(c->group, v->group) == 0);
}

int arm_list(struct arm_call *c, enum arm_kind kind)
{
    bool has_view, has_user_data;
    if (read_expand(c, &has_view, &has_user_data) < 0)
        return -1;
    if (form_get(&c->form, "$filter"))
        return arm_fail(
            c, "InvalidParameter", "This emulator has no $filter for %s.", arm_type(kind));
    json_t *list = json_array();
    for (size_t i = 0; i < c->arm->n_resources; i++) {
        const struct arm_resource *v = c->arm->resources[i];
        if (v->kind == kind && is_listed(c, v))
            json_array_append_new(list, arm_show(c->arm, v, has_view));
    }
    return arm_reply_page(c, list);
}

/* ---- GET /subscriptions/S/resources ---- */

enum { BY_TAG_NAME, BY_TAG_VALUE, BY_TYPE, BY_NAME, BY_GROUP, BY_LOCATION };
static const char *const filter_names[] = {
    "tagName", "tagValue", "resourceType", "name", "resourceGroup", "location", NULL};

static bool has_tag(const struct arm_resource *v, const char *name, const char *value)
{
    const char *key;
    json_t *have;
    json_object_foreach((json_t *)arm_at(v->body, "tags"), key,
        have) if (strcasecmp(key, name) == 0 &&
                  (!value || str_eq(value, json_string_value(have)))) return true;
    return false;
}

static bool passes(
    const struct arm_call *c, const struct arm_filter *f, const struct arm_resource *v)
{
    const char *tag = NULL, *value = NULL;
    for (size_t i = 0; i < f->n; i++) {
        const struct arm_filter_term *t = &f->terms[i];
        const char *text = t->field == BY_TYPE    ? arm_type(v->kind)
                           : t->field == BY_NAME  ? v->name
                           : t->field == BY_GROUP ? v->group
                                                  : c->arm->region->o->name;
        if (t->field == BY_TAG_NAME)
            tag = t->text;
        else if (t->field == BY_TAG_VALUE)
            value = t->text;
        else if (!arm_filter_passes(t, text))
            return false;
    }
    return !tag || has_tag(v, tag, value);
}

/* tagValue requires tagName, and both only support comparison. */
static bool is_sound(const struct arm_filter *f)
{
    bool has_name = false, has_value = false, is_eq = true;
    for (size_t i = 0; i < f->n; i++) {
        bool is_name = f->terms[i].field == BY_TAG_NAME,
             is_value = f->terms[i].field == BY_TAG_VALUE;
        has_name = has_name || is_name;
        has_value = has_value || is_value;
        is_eq = is_eq && ((!is_name && !is_value) || f->terms[i].test == FILTER_EQ);
    }
    return is_eq && (has_name || !has_value);
}

int arm_list_all(struct arm_call *c)
{
    static const char *const shown[] = {
        "id", "name", "type", "location", "tags", "zones", "managedBy", NULL};
    const char *text = form_get(&c->form, "$filter");
    struct arm_filter f;
    struct err e;
    if (arm_filter_parse(text, filter_names, &f, &e) < 0)
        return arm_fail(c, "InvalidFilterInQueryString",
            "Invalid $filter '%.200s' specified in the query string: %s.", text, e.text);
    if (!is_sound(&f))
        return arm_fail(c, "InvalidFilterInQueryString",
            "Invalid $filter '%.200s' specified in the query string.", text);
    json_t *list = json_array();
    for (size_t i = 0; i < c->arm->n_resources; i++) {
        const struct arm_resource *v = c->arm->resources[i];
        if (!is_listed(c, v) || !passes(c, &f, v))
            continue;
        json_t *all = arm_show(c->arm, v, false), *o = json_object();
        for (size_t k = 0; shown[k]; k++)
            if (json_object_get(all, shown[k]))
                json_object_set(o, shown[k], json_object_get(all, shown[k]));
        json_array_append_new(list, o);
        json_decref(all);
    }
    return arm_reply_page(c, list);
}
