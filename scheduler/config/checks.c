/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/config/checks.h"

#include "base/fs.h"
#include "base/str.h"
#include "ckpt/master.h"
#include "scheduler/config/own_name.h"
#include "scheduler/config/reach.h"
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#define SECRET_MAX 4096
#define NAME_WAIT_MS 5000

/* ---- pools ---- */

/* Examples of zones: us-east-1a, us-west-2-lax-1a (aws), us-central1-a (gcp), 1 (azure). Zones of
 * other providers are not checked. */
static bool is_zone_of(const char *provider, const char *zone, const char *region)
{
    size_t n = strlen(region);
    if (str_eq(provider, "azure"))
        return zone[0] && strspn(zone, "0123456789") == strlen(zone);
    if (str_eq(provider, "gcp"))
        return str_starts(zone, region) && zone[n] == '-' && zone[n + 1];
    return !str_eq(provider, "aws") || (str_starts(zone, region) && zone[n]);
}

static bool has_setting(const struct cloud_provider *p, const char *key)
{
    for (const struct cloud_setting *s = p->settings; s->key; s++)
        if (str_eq(s->key, key))
            return true;
    return false;
}

static int check_offers(const struct config_pool *p, struct err *e)
{
    const struct offer_row *first = NULL;
    for (size_t i = 0; i < p->n_offers; i++) {
        const struct offer_row *o = &p->offers[i];
        if (p->provider->offers == CLOUD_OFFERS_ZONES &&
            !is_zone_of(p->provider->name, o->zone, p->row.region))
            return err_set(e, ERR_CONFIG, "pool %s: zones: %s is not a zone of region %s",
                p->row.name, o->zone, p->row.region);
        if (!o->arch[0] || !has_setting(p->provider, "image"))
            continue;
        if (first && !str_eq(first->arch, o->arch))
            return err_set(e, ERR_CONFIG,
                "pool %s: types: %s is %s and %s is %s, and its one image boots on one of them: "
                "make a pool for each",
                p->row.name, first->type, first->arch, o->type, o->arch);
        first = o;
    }
    return 0;
}

int config_check_pools(const struct config *pools, struct err *e)
{
    int rc = 0;
    for (size_t i = 0; i < pools->n_pools && rc == 0; i++)
        if (pools->pools[i].row.elastic && !pools->pools[i].endpoint)
            rc = check_offers(&pools->pools[i], e);
    return rc;
}

/* ---- files ---- */

static int check_secret(const char *path, const char *key, struct err *e)
{
    struct buf text = {0};
    int rc = path ? fs_read_secret(path, SECRET_MAX, &text, e) : 0;
    buf_wipe(&text);
    return rc == 0 ? 0 : err_wrap(e, "%s", key);
}

static int check_readable(const char *path, const char *key, struct err *e)
{
    if (!path || access(path, R_OK) == 0)
        return 0;
    return err_errno(e, errno, "%s: %s cannot be read", key, path);
}

/* Only a configured path must exist, because a cluster may send no mail. */
static int check_sendmail(const struct config_notify *c, struct err *e)
{
    if (!c->names_sendmail || access(c->sendmail, X_OK) == 0)
        return 0;
    return err_errno(e, errno, "mail: sendmail: %s cannot be run", c->sendmail);
}

int config_check_notify_files(const struct config_notify *c, struct err *e)
{
    int rc = 0;
    for (size_t i = 0; i < c->n_hooks && rc == 0; i++) {
        rc = check_secret(c->files[i].url_file, "webhooks: url_file", e);
        if (rc == 0)
            rc = check_secret(c->files[i].secret_file, "webhooks: secret_file", e);
        if (rc == 0)
            rc = check_secret(c->files[i].key_file, "webhooks: routing_key_file", e);
    }
    if (rc == 0)
        rc = check_secret(c->password_file, "mail: password_file", e);
    if (rc == 0)
        rc = check_readable(c->ca_file, "mail: ca_file", e);
    return rc == 0 ? check_sendmail(c, e) : rc;
}

int config_check_files(const struct config *c, const struct config *pools, struct err *e)
{
    struct master m = {0};
    int rc = 0;
    for (size_t i = 0; i < pools->n_pools && rc == 0; i++)
        if (check_readable(pools->pools[i].credentials, "credentials", e) != 0)
            rc = err_wrap(e, "pool %s", pools->pools[i].row.name);
    if (rc == 0)
        rc = config_check_notify_files(&c->notify, e);
    if (rc != 0)
        return rc;
    rc = master_read(c->key_file, &m, e);
    master_wipe(&m);
    return rc == ERR_NOT_FOUND ? 0 : rc ? err_wrap(e, "key_file") : 0; /* a start creates it */
}

/* ---- names ---- */

static int check_host(const char *url, const char *key, struct err *e)
{
    const char *host = url ? strstr(url, "://") : NULL;
    char name[256];
    size_t n;
    if (!host)
        return 0;
    host += strlen("://");
    host += *host == '[';
    n = strcspn(host, host[-1] == '[' ? "]" : ":/?#");
    if (n == 0 || n >= sizeof(name))
        return err_set(e, ERR_CONFIG, "%s: there is no host in %s", key, url);
    memcpy(name, host, n);
    name[n] = '\0';
    return own_name_check_peer(name, NULL, key, NAME_WAIT_MS, e);
}

int config_check_names(const struct config *c, struct err *e)
{
    int rc = check_host(c->notify.smtp, "mail: smtp", e);
    for (size_t i = 0; i < c->notify.n_hooks && rc == 0; i++) {
        rc = check_host(c->notify.files[i].url, "url", e);
        if (rc != 0)
            err_wrap(e, "webhooks: %s", c->notify.hooks[i].name);
    }
    return rc;
}
