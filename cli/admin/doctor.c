/* SPDX-License-Identifier: Apache-2.0
 *
 * Each check adds a row: fine, a fault with its cure, or not examined. A check that needs another's
 * result is left out without it.
 */
#include "cli/admin/doctor.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/vformat.h"
#include "ckpt/store/marker.h"
#include "cli/admin/state.h"
#include "cli/cli.h"
#include "cli/keys.h"
#include "cli/list_table.h"
#include <inttypes.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <unistd.h>

#define CALL_MS 10000
#define QUOTAS "provider quotas" /* the check's name */
#define PEM_BYTES_MAX (64u << 10)

struct doctor {
    struct client *client; /* NULL if belayd does not answer */
    json_t *version;       /* its answer; may be NULL */
    char *state;
    json_t *rows;
    int faults;
};

static const struct list_column columns[] = {
    {"CHECK", "check", COLUMN_TEXT},
    {"RESULT", "result", COLUMN_TEXT},
    {"FOUND", "text", COLUMN_TEXT},
    {"CURE", "cure", COLUMN_TEXT},
    {NULL, NULL, COLUMN_TEXT},
};

static void add(
    struct doctor *d, const char *check, const char *result, const char *text, const char *cure)
{
    d->faults += str_eq(result, "fault");
    json_array_append_new(
        d->rows, json_pack("{s:s,s:s,s:o,s:o}", "check", check, "result", result, "text",
                     json_text(text), "cure", cure ? json_text(cure) : json_null()));
}

static void fine(struct doctor *d, const char *check, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void fault(struct doctor *d, const char *check, const char *cure, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

static void fine(struct doctor *d, const char *check, const char *fmt, ...)
{
    char text[ERR_TEXT_MAX];
    VFORMAT(text, fmt);
    add(d, check, "ok", text, NULL);
}

static void fault(struct doctor *d, const char *check, const char *cure, const char *fmt, ...)
{
    char text[ERR_TEXT_MAX];
    VFORMAT(text, fmt);
    add(d, check, "fault", text, cure);
}

/* ---- belayd ---- */

static void check_belayd(struct doctor *d)
{
    struct err e;
    int rc = client_create(&d->client, &e);
    if (rc == 0)
        rc = client_json(d->client, "GET", "/api/v1/version", NULL, &d->version, &e);
    if (rc != 0) {
        fault(d, "belayd",
            "start it (systemctl start belayd, or belay up); its log says why it does not start",
            "%s", e.text);
        return;
    }
    const char *version = cli_text(d->version, "version");
    if (str_eq(version, BELAY_VERSION))
        fine(d, "belayd", "version %s answers", version);
    else
        fault(d, "belayd", "install the same version of both",
            "belayd has version %s, this belay %s", version, BELAY_VERSION);
}

static void check_audit_log(struct doctor *d)
{
    struct err e;
    json_t *v = NULL;
    if (!d->version)
        return;
    int rc = client_json(d->client, "GET", "/api/v1/admin/audit-log/verify", NULL, &v, &e);
    if (rc != 0)
        add(d, "audit log", "unknown", e.text, "ask as an administrator");
    else if (json_is_null(json_object_get(v, "fault")))
        fine(d, "audit log", "%lld rows, complete", (long long)cli_int(v, "rows", 0));
    else
        fault(d, "audit log", "find out who changed it; then docs/reference/audit-log.md", "%s",
            cli_text(v, "fault"));
    json_decref(v);
}

static void check_pool(struct doctor *d, const json_t *pool)
{
    const json_t *boots = json_object_get(pool, "boots"),
                 *nodes = json_object_get(json_object_get(pool, "limits"), "nodes");
    const char *name = cli_text(pool, "name");
    int64_t failed = cli_int(boots, "failed", 0), max = cli_int(nodes, "max", 0);
    if (failed > 0)
        fault(d, "pools", "belay pools show NAME shows the console of the last such machine",
            "%s: %" PRId64 " machines in a row did not join: %s", name, failed,
            cli_text(boots, "text"));
    else if (max > 0 && cli_int(nodes, "used", 0) >= max)
        fault(d, "quotas", "raise max_nodes of the pool, if its jobs should not wait",
            "%s: all %" PRId64 " machines that it may have are in use", name, max);
}

static void check_pools(struct doctor *d)
{
    const int before = d->faults;
    size_t i;
    json_t *v = NULL, *pool;
    struct err e;
    if (!d->version)
        return;
    if (client_json(d->client, "GET", "/api/v1/pools/detail", NULL, &v, &e) != 0) {
        fault(d, "pools", "see belayd's log", "%s", e.text);
        return;
    }
    json_array_foreach(json_object_get(v, "pools"), i, pool) check_pool(d, pool);
    if (d->faults == before)
        fine(d, "pools", "%zu, machines join and no limit is reached",
            json_array_size(json_object_get(v, "pools")));
    json_decref(v);
}

/* ---- quotas of the accounts at the providers ---- */

/* The pools of a row, separated by commas, and how many machines they may still start. */
static int64_t name_pools(const json_t *row, char *out, size_t size)
{
    const json_t *pool;
    struct buf names = {0};
    int64_t nodes = 0;
    size_t i;
    json_array_foreach(json_object_get(row, "pools"), i, pool)
    {
        buf_printf(&names, "%s%s", i > 0 ? ", " : "", cli_text(pool, "pool"));
        nodes += cli_int(pool, "nodes", 0);
    }
    str_copy(out, size, buf_str(&names));
    buf_deinit(&names);
    return nodes;
}

static void add_quota(struct doctor *d, const json_t *row)
{
    char pools[128], cure[ERR_TEXT_MAX], text[ERR_TEXT_MAX], part[32] = "an unknown part";
    const json_t *enough = json_object_get(row, "enough");
    int64_t used = cli_int(row, "used", -1), nodes = name_pools(row, pools, sizeof(pools));
    if (json_is_true(enough))
        return;
    if (used >= 0)
        snprintf(part, sizeof(part), "%" PRId64, used);
    snprintf(text, sizeof(text),
        "%s, %s, \"%s\": %s of %" PRId64 " used; pool %s may start %" PRId64
        " more machines, which need %" PRId64,
        cli_text(row, "provider"), cli_text(row, "scope"), cli_text(row, "name"), part,
        cli_int(row, "limit", 0), pools, nodes, cli_int(row, "wanted", 0));
    snprintf(cure, sizeof(cure), "ask for more of it (%s), or lower max_nodes of pool %s",
        cli_text(row, "page"), pools);
    add(d, QUOTAS, json_is_false(enough) ? "fault" : "unknown", text, cure);
}

static void add_unknown_quotas(struct doctor *d, const json_t *row)
{
    char text[ERR_TEXT_MAX], cure[ERR_TEXT_MAX];
    bool denied = str_eq(cli_text(row, "kind"), "denied");
    snprintf(text, sizeof(text), "pool %s (%s, %s): %s", cli_text(row, "pool"),
        cli_text(row, "provider"), cli_text(row, "region"), cli_text(row, "text"));
    snprintf(cure, sizeof(cure), "%s%s",
        denied ? "grant that right to belayd, or look at " : "look at ", cli_text(row, "page"));
    add(d, QUOTAS, "unknown", text, cure);
}

/* belayd asks the providers: it has their credentials, this program has none. */
static void check_account_quotas(struct doctor *d)
{
    const size_t before = json_array_size(d->rows);
    json_t *v = NULL, *row;
    struct err e;
    size_t i;
    if (!d->version)
        return;
    if (client_json(d->client, "GET", "/api/v1/admin/account-quotas", NULL, &v, &e) != 0) {
        add(d, QUOTAS, "unknown", e.text, "ask as an administrator");
        return;
    }
    json_array_foreach(json_object_get(v, "quotas"), i, row) add_quota(d, row);
    json_array_foreach(json_object_get(v, "unknown"), i, row) add_unknown_quotas(d, row);
    size_t n = json_array_size(json_object_get(v, "quotas"));
    if (n > 0 && json_array_size(d->rows) == before)
        fine(d, QUOTAS, "%zu, each has room for what the pools may start", n);
    json_decref(v);
}

/* ---- this machine ---- */

static void check_clock(struct doctor *d)
{
    struct timex t = {0};
    int state = adjtimex(&t);
    if (state < 0)
        add(d, "clock", "unknown", "the system does not say whether it is synchronised", NULL);
    else if (state == TIME_ERROR || (t.status & STA_UNSYNC))
        fault(d, "clock",
            "enable chrony or systemd-timesyncd: certificates, schedules and bills need it",
            "the clock of this machine is not synchronised");
    else
        fine(d, "clock", "synchronised");
}

static void check_rights(struct doctor *d)
{
    static const char *const names[] = {
        "", "/ca.key", "/secret.keys", "/checkpoint.keys", "/belay.db"};
    const int before = d->faults;
    struct stat st;
    if (stat(d->state, &st) != 0) {
        fault(d, "rights", "name the state directory with --state", "%s is not there", d->state);
        return;
    }
    if (access(d->state, R_OK | X_OK) != 0) {
        add(d, "rights", "unknown", "the state directory cannot be read by this user",
            "run it as belayd's user, or as root");
        return;
    }
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char *path = mem_printf("%s%s", d->state, names[i]);
        if (stat(path, &st) == 0 && (st.st_mode & 077) != 0)
            fault(d, "rights", i == 0 ? "chmod 700" : "chmod 600", "%s is open to others (mode %o)",
                path, (unsigned)st.st_mode & 0777);
        free(path);
    }
    if (d->faults == before)
        fine(d, "rights", "%s and its keys are readable by belayd's user only", d->state);
}

static void check_disk(struct doctor *d)
{
    struct statvfs fs;
    char has[32], needs[32];
    if (statvfs(d->state, &fs) != 0)
        return;
    int64_t total = (int64_t)fs.f_blocks * (int64_t)fs.f_frsize,
            left = (int64_t)fs.f_bavail * (int64_t)fs.f_frsize;
    str_format_bytes((uint64_t)left, has, sizeof(has));
    str_format_bytes((uint64_t)fs_reserve(total), needs, sizeof(needs));
    if (left < fs_reserve(total))
        fault(d, "disk", "free space there: move old output of jobs out of logs/",
            "%s has %s left, and new work is refused below %s", d->state, has, needs);
    else
        fine(d, "disk", "%s left", has);
}

/* ---- what nodes and users dial ---- */

static bool host_of(const char *url, char *out, size_t size)
{
    const char *at = strstr(url, "://");
    if (!at)
        return false;
    at += 3;
    const char *end = at[0] == '[' ? strchr(at, ']') : NULL;
    size_t n = end ? (size_t)(end - at - 1) : strcspn(at, ":/");
    if (n == 0 || n >= size)
        return false;
    memcpy(out, at + (end != NULL), n);
    out[n] = '\0';
    return true;
}

static void check_name(struct doctor *d)
{
    char host[256];
    struct addrinfo *found = NULL;
    if (!d->version || !host_of(cli_text(d->version, "listen"), host, sizeof(host)))
        return;
    int rc = getaddrinfo(host, NULL, NULL, &found);
    if (rc == 0)
        fine(d, "DNS", "%s is known", host);
    else
        fault(d, "DNS", "add it to DNS, or name another address with server: in belayd.yaml",
            "%s, which nodes dial, is not known here: %s", host, gai_strerror(rc));
    if (found)
        freeaddrinfo(found);
}

static void check_tls(struct doctor *d)
{
    char *path = mem_printf("%s/ca.pem", d->state);
    struct client_reply reply = {0};
    struct buf pem = {0};
    struct client *c = NULL;
    struct err e;
    if (d->version && fs_read(path, PEM_BYTES_MAX, &pem, &e) == 0) {
        const char *url = cli_text(d->version, "listen");
        client_create_at(url, buf_str(&pem), "", &c);
        if (client_call(c, "GET", "/healthz", NULL, CALL_MS, &reply, &e) == 0)
            fine(d, "TLS", "%s is reachable, and its certificate has that name", url);
        else
            fault(d, "TLS",
                "let the port through, and list the name under names: in belayd.yaml; then restart "
                "belayd",
                "%s: %s", url, e.text);
        client_reply_deinit(&reply);
        client_destroy(c);
    }
    buf_deinit(&pem);
    free(path);
}

/* ---- the store ---- */

struct marker_query {
    const char *cluster;
    struct marker mark;
};

static int read_marker(void *ctx, struct store *s, struct err *e)
{
    struct marker_query *q = ctx;
    return marker_read(s, q->cluster, &q->mark, e);
}

static void check_store(struct doctor *d)
{
    const char *url = cli_text(d->version, "store");
    struct marker_query q = {.cluster = cli_text(d->version, "cluster")};
    struct err e;
    if (!d->version)
        return;
    if (keys_with_store(url, read_marker, &q, &e) != 0)
        fault(d, "store", "mount it, or give this machine the rights of docs/reference/stores.md",
            "%s", e.text);
    else if (!str_eq(q.mark.uid, cli_text(d->version, "cluster_uid")))
        fault(d, "store", "see docs/reference/stores.md, \"Whose the store is\"",
            "%s is not marked as this cluster's", url);
    else
        fine(d, "store", "%s is this cluster's", url);
}

int admin_doctor(const struct admin_options *o, const char *word)
{
    struct doctor d = {.state = admin_find_state(o->state), .rows = json_array()};
    (void)word;
    check_belayd(&d);
    check_clock(&d);
    check_rights(&d);
    check_disk(&d);
    check_name(&d);
    check_tls(&d);
    check_store(&d);
    check_pools(&d);
    check_account_quotas(&d);
    check_audit_log(&d);
    if (o->json) {
        json_t *v = json_pack("{s:O,s:i}", "checks", d.rows, "faults", d.faults);
        cli_print_json(v);
        json_decref(v);
    } else {
        list_table(d.rows, columns);
    }
    client_destroy(d.client);
    json_decref(d.version);
    json_decref(d.rows);
    free(d.state);
    return d.faults == 0 ? CLI_OK : CLI_FAILED;
}
