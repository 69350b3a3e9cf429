/* SPDX-License-Identifier: Apache-2.0
 *
 * Listing: tagged resources --> the machines --> their power states --> DELETE VM of the
 * deallocated.
 *
 * Invariant: the network interface and the disk are deleted with their machine (deleteOption). Any
 * that remain are found by their tag, listed after they have been without a machine for a while,
 * and deleted by name like a machine.
 */
#include "cloud/azure/list.h"

#include "base/mem.h"
#include "base/str.h"
#include <stdlib.h>
#include <string.h>

/* A launch creates the machine seconds after its network interface; a part alone for longer is a
 * leftover. */
#define LEFTOVER_MS SECONDS_MS(30)

static const struct unattached *find_unattached(const struct azure_driver *d, const char *name)
{
    for (size_t i = 0; i < d->n_lonely; i++)
        if (str_eq(d->unattached[i].name, name))
            return &d->unattached[i];
    return NULL;
}

/* A part is never mistaken for a machine: its name has a suffix. */
static bool has_machine(const struct azure_call *c, const char *part)
{
    size_t n = (size_t)(strrchr(part, '-') - part);
    for (size_t i = 0; i < c->base.instances.n; i++) {
        const char *id = c->base.instances.list[i].id;
        if (strlen(id) == n && strncasecmp(id, part, n) == 0)
            return true;
    }
    return false;
}

/* Adds the parts that have been without a machine for long enough; records since when for the
 * others. */
static int add_leftovers(struct azure_call *c, struct err *e)
{
    struct azure_driver *d = c->d;
    struct mono now = clock_mono(d->calls.timers->clock);
    struct unattached *unattached = mem_array(c->leftovers.n + 1, sizeof(*unattached));
    size_t n = 0;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < c->leftovers.n; i++) {
        const struct cloud_instance *part = &c->leftovers.list[i];
        const struct unattached *known = find_unattached(d, part->id);
        if (has_machine(c, part->id))
            continue;
        STR_COPY(unattached[n].name, part->id);
        unattached[n].since = known ? known->since : now;
        if (now.ms - unattached[n++].since.ms >= LEFTOVER_MS)
            rc = cloud_instances_add(&c->base.instances, part, e);
    }
    free(d->unattached);
    d->unattached = unattached;
    d->n_lonely = n;
    return rc;
}

/* A listing of the account has no parts of machines, and removes nothing. */
static void end_list(struct azure_call *c)
{
    struct err e;
    if (!c->base.cluster) {
        cloud_call_finish(&c->base, NULL);
        return;
    }
    cloud_call_finish(&c->base, add_leftovers(c, &e) == 0 ? NULL : &e);
}

/* A deallocated spot machine would remain, and its disk would be billed. It is listed as stopping
 * and deleted. */
static void drop_deallocated(struct azure_call *c)
{
    const struct cloud_instances *l = &c->base.instances;
    for (size_t i = 0; c->base.cluster && i < l->n; i++)
        if (l->list[i].reclaimed && str_eq(l->list[i].cluster, c->base.cluster))
            cloud_call_add_words(&c->base, &(const char *){l->list[i].id}, 1);
    if (c->base.n_words > 0)
        azure_call_continue(c, LIST_DROP);
    else
        end_list(c);
}

/* The outcome does not matter: the next listing shows it. */
static void on_deallocated_dropped(struct azure_call *c)
{
    if (++c->base.next_word < c->base.n_words)
        azure_call_continue(c, LIST_DROP);
    else
        end_list(c);
}

static int parse_list_page(struct azure_call *c, const struct http_reply *reply, struct err *e)
{
    const char *body = buf_str(&reply->body), *region = c->base.region;
    size_t n = reply->body.len;
    if (c->phase == LIST_TAGGED)
        return arm_parse_tagged(body, n, &c->d->machine, region, &c->leftovers, c->url, e);
    if (c->phase == LIST_VMS)
        return arm_parse_vms(body, n, region, !c->base.cluster, &c->base.instances, c->url, e);
    return arm_parse_power(body, n, &c->base.instances, c->url, e);
}

static void on_list_reply(struct cloud_call *base, const struct http_reply *reply)
{
    struct azure_call *c = (struct azure_call *)base;
    struct err e;
    if (c->phase == LIST_DROP) {
        on_deallocated_dropped(c);
    } else if (reply->status != 200) {
        if (!azure_call_read_refusal(c, reply, &e))
            return;
        if (c->phase == LIST_POWER && e.kind == ERR_DENIED) /* an optional permission */
            end_list(c);
        else
            cloud_call_finish(base, &e);
    } else if (parse_list_page(c, reply, &e) != 0) {
        cloud_call_finish(base, &e);
    } else if (!azure_call_next_page(c, c->d->endpoint_url)) {
        if (c->phase == LIST_TAGGED)
            azure_call_continue(c, LIST_VMS);
        else if (c->phase == LIST_VMS && base->instances.n > 0)
            azure_call_continue(c, LIST_POWER);
        else
            drop_deallocated(c);
    }
}

void azure_list(
    struct cloud_driver *d, const char *region, const char *cluster, cloud_list_fn done, void *ctx)
{
    static const struct cloud_call_ops
        own = {"list", azure_call_step, on_list_reply, azure_call_deinit},
        all = {"list", azure_call_step, on_list_reply, azure_call_deinit,
            .permission = "Microsoft.Compute/virtualMachines/read in the subscription"};
    struct azure_call *c = azure_call_new(d, region, cluster ? LIST_TAGGED : LIST_VMS);
    cloud_call_list(&c->d->calls, &c->base, cluster ? &own : &all, region, cluster, done, ctx);
}
