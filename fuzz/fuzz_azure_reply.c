/* SPDX-License-Identifier: Apache-2.0
 *
 * Azure's replies. The first byte selects the parser: '0' a machine, '1' machines, '2' tagged
 * resources, '3' power states, '4' prices, '5' an operation, '6' a resource's progress, '7'
 * Scheduled Events, '9' disks, 'c' the address of a console log, 'l' a console log, anything else a
 * refusal.
 */
#include "base/str.h"
#include "cloud/azure/arm.h"
#include "cloud/azure/notice.h"
#include "cloud/console.h"
#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_instance(const struct cloud_instance *i)
{
    assert(i->id[0] && strlen(i->id) < sizeof(i->id));
    assert(strlen(i->token) < sizeof(i->token) && strlen(i->cluster) < sizeof(i->cluster));
    assert(strlen(i->reason) < sizeof(i->reason) && str_is_utf8(i->reason, strlen(i->reason)));
    assert(!i->reclaimed || i->state == CLOUD_STOPPING || i->state == CLOUD_GONE);
}

static int check_list(struct cloud_instances *l, const char *next, int rc)
{
    for (size_t i = 0; rc == 0 && i < l->n; i++)
        check_instance(&l->list[i]);
    assert(rc != 0 || strlen(next) <= ARM_URL_MAX);
    cloud_instances_deinit(l);
    return rc;
}

static int read_vm(const char *body, size_t n, struct err *e)
{
    struct cloud_instance i;
    int rc = arm_parse_vm(body, n, &i, e);
    if (rc == 0)
        check_instance(&i);
    return rc;
}

static int read_vms(const char *body, size_t n, struct err *e)
{
    struct cloud_instances l = {0};
    char next[ARM_URL_MAX + 1];
    int rc = arm_parse_vms(body, n, "eastus", n % 2 == 0, &l, next, e);
    return check_list(&l, next, rc);
}

static int read_tagged(const char *body, size_t n, struct err *e)
{
    static const struct azure_machine m = {.subscription = "s", .resource_group = "g"};
    struct cloud_instances l = {0};
    char next[ARM_URL_MAX + 1];
    int rc = arm_parse_tagged(body, n, &m, "eastus", &l, next, e);
    for (size_t i = 0; rc == 0 && i < l.n; i++)
        assert(arm_part_of(l.list[i].id) != ARM_VM && !l.list[i].token[0]);
    return check_list(&l, next, rc);
}

static int read_power(const char *body, size_t n, struct err *e)
{
    struct cloud_instance i = {.id = "a", .state = CLOUD_RUNNING};
    struct cloud_instances l = {0};
    char next[ARM_URL_MAX + 1];
    int rc = cloud_instances_add(&l, &i, e);
    if (rc == 0)
        rc = arm_parse_power(body, n, &l, next, e);
    assert(l.n == 1);
    return check_list(&l, next, rc);
}

static int read_prices(const char *body, size_t n, struct err *e)
{
    struct cloud_prices l = {0};
    char next[ARM_URL_MAX + 1];
    int rc = arm_parse_prices(body, n, "eastus", "t", &l, next, e);
    for (size_t i = 0; rc == 0 && i < l.n; i++)
        assert(str_eq(l.list[i].type, "t") && l.list[i].uusd_h > 0 && wall_is_set(l.list[i].since));
    cloud_prices_deinit(&l);
    return rc;
}

static int read_disks(const char *body, size_t n, struct err *e)
{
    struct cloud_volumes l = {0};
    char next[ARM_URL_MAX + 1];
    int rc = arm_parse_disks(body, n, "eastus", &l, next, e);
    for (size_t i = 0; rc == 0 && i < l.n; i++) {
        const struct cloud_volume *v = &l.list[i];
        assert(strchr(v->name, '/') && strlen(v->name) < sizeof(v->name) &&
               strlen(v->id) < sizeof(v->id));
        assert(v->gib >= 0 && v->gib <= CLOUD_VOLUME_GIB_MAX);
    }
    assert(rc != 0 || strlen(next) <= ARM_URL_MAX);
    cloud_volumes_deinit(&l);
    return rc;
}

static int read_operation(const char *body, size_t n, struct err *e)
{
    bool done;
    return arm_parse_operation(body, n, &done, e);
}

static int read_progress(const char *body, size_t n, struct err *e)
{
    bool done;
    return arm_parse_progress(body, n, &done, e);
}

static int read_events(const char *body, size_t n, struct err *e)
{
    struct azure_events events = {0};
    int rc = azure_notice_parse_events(body, n, "m", &events, e);
    assert(events.n <= n);
    for (size_t i = 0; i < events.n; i++)
        assert(strlen(events.list[i].id) < AZURE_EVENT_ID_MAX && events.list[i].notice_ms > 0);
    azure_events_deinit(&events);
    return rc;
}

static int read_console(const char *body, size_t n, struct err *e)
{
    static const char *const endpoints[] = {AZURE_ENDPOINT, "http://127.0.0.1:4568"};
    char url[ARM_URL_MAX + 1] = "kept";
    const char *endpoint = endpoints[n % 2];
    int rc = arm_parse_console(body, n, endpoint, url, e);
    assert(rc == 0 ? !url[0] || arm_url_is_blob(url, endpoint) : str_eq(url, "kept"));
    assert(rc == 0 || !strstr(e->text, "sig="));
    return rc;
}

static int read_log(const char *body, size_t n, struct err *e)
{
    struct buf out = {0};
    (void)e;
    cloud_console_clean(body, n, &out);
    assert(out.len <= CLOUD_CONSOLE_MAX && (out.len == 0 || out.data[out.len - 1] == '\n'));
    for (size_t i = 0; i < out.len; i++)
        assert(out.data[i] == '\n' || (out.data[i] >= ' ' && out.data[i] < 0x7f));
    buf_deinit(&out);
    return 0;
}

static int read_refusal(const char *body, size_t n, struct err *e)
{
    enum arm_remedy remedy;
    int kind = arm_parse_error(400 + (int)(n % 200), body, n, &remedy, e);
    assert(kind != ERR_NONE && kind == (int)e->kind && str_is_utf8(e->text, strlen(e->text)));
    return kind;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int (*const readers[])(const char *, size_t, struct err *) = {read_vm, read_vms,
        read_tagged, read_power, read_prices, read_operation, read_progress, read_events,
        read_disks, read_console, read_log, read_refusal};
    if (size == 0)
        return 0;
    size_t which = data[0] >= '0' && data[0] < '8' ? (size_t)(data[0] - '0')
                   : data[0] == '9'                ? 8
                   : data[0] == 'c'                ? 9
                   : data[0] == 'l'                ? 10
                                                   : 11;
    struct err e = {0};
    int rc = readers[which]((const char *)data + 1, size - 1, &e);
    assert(rc == 0 || (rc == (int)e.kind && e.text[0] && strlen(e.text) < ERR_TEXT_MAX));
    return 0;
}
