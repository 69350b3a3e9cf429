/* SPDX-License-Identifier: Apache-2.0
 *
 * See store_location.h. Of a configuration file only store, cluster, state and key_file are read;
 * belayd checks the rest.
 */
#include "cli/store_location.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/yaml.h"
#include "cli/cli.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CLUSTER_DEFAULT "belay"
#define STATE_DEFAULT "/var/lib/belay"
#define KEY_FILE "checkpoint.keys"

static const char *or_variable(const char *given, const char *variable)
{
    const char *value = getenv(variable);
    return given ? given : value && value[0] ? value : NULL;
}

static const char *scalar(const struct yaml_node *root, const char *key)
{
    for (size_t i = 0; i < root->n_items; i++)
        if (str_eq(root->items[i]->key, key) && root->items[i]->type == YAML_SCALAR &&
            !yaml_is_null(root->items[i]))
            return root->items[i]->text;
    return NULL;
}

/* Escapes percent signs, which would be decoded in a URL. */
static char *store_in(const char *state)
{
    struct buf url = {0};
    buf_adds(&url, "file://");
    for (; *state; state++)
        *state == '%' ? buf_adds(&url, "%25") : buf_addc(&url, *state);
    buf_adds(&url, "/store");
    char *text = mem_strdup(buf_str(&url));
    buf_deinit(&url);
    return text;
}

/* A file named explicitly must exist; the default in a state directory may not. */
static void take_key_file(struct store_location *p, const char *named, const char *state)
{
    char *path = named ? mem_strdup(named) : mem_printf("%s/" KEY_FILE, state);
    if (!p->key_file && (named || fs_exists(path)))
        p->key_file = path;
    else
        free(path);
}

static int read_config(const char *file, const char *state, struct store_location *p, struct err *e)
{
    struct buf text = {0};
    struct yaml_node *root = NULL;
    int rc = fs_read(file, YAML_BYTES_MAX, &text, e);
    if (rc == 0)
        rc = yaml_parse(file, buf_str(&text), text.len, &root, e);
    if (rc == 0) {
        const char *store = scalar(root, "store"), *cluster = scalar(root, "cluster"),
                   *own = scalar(root, "state");
        p->store = store ? mem_strdup(store) : store_in(state ? state : own ? own : STATE_DEFAULT);
        p->cluster = mem_strdup(cluster ? cluster : CLUSTER_DEFAULT);
        take_key_file(p, scalar(root, "key_file"), state ? state : own ? own : STATE_DEFAULT);
    }
    yaml_node_free(root);
    buf_deinit(&text);
    return rc;
}

static int get_from_belayd(struct store_location *p, struct err *e)
{
    struct client *c;
    json_t *v = NULL;
    int rc = client_create(&c, e);
    if (rc != 0)
        return rc;
    rc = client_json(c, "GET", "/api/v1/version", NULL, &v, e);
    client_destroy(c);
    if (rc == 0) {
        p->store = mem_strdup(cli_text(v, "store"));
        p->cluster = mem_strdup(cli_text(v, "cluster"));
    }
    json_decref(v);
    return rc;
}

/* `belay up` keeps its state in its home whatever the file says. */
static int read_local(struct store_location *p, struct err *e)
{
    char *home = cli_home(), *file = mem_printf("%s/belayd.yaml", home);
    int rc = access(file, R_OK) == 0 ? read_config(file, home, p, e) : e->kind;
    free(file);
    free(home);
    return rc;
}

static void find_key_file(struct store_location *p)
{
    char *home = cli_home();
    take_key_file(p, NULL, home);
    take_key_file(p, NULL, STATE_DEFAULT);
    free(home);
}

int store_location_find(
    const struct store_location_options *o, struct store_location *ret_location, struct err *e)
{
    const char *store = o->config ? o->store : or_variable(o->store, "BELAY_STORE");
    const char *cluster = or_variable(o->cluster, "BELAY_CLUSTER");
    const char *key_file = or_variable(o->key_file, "BELAY_KEY_FILE");
    const char *server = getenv("BELAY_SERVER");
    int rc = 0;
    *ret_location = (struct store_location){.key_file = mem_strdup(key_file)};
    if (store) {
        ret_location->store = mem_strdup(store);
        ret_location->cluster = mem_strdup(cluster ? cluster : CLUSTER_DEFAULT);
    } else if (o->config) {
        rc = read_config(o->config, NULL, ret_location, e);
    } else {
        rc = get_from_belayd(ret_location, e);
    }
    if (rc == ERR_UNAVAILABLE && !(server && server[0]))
        rc = read_local(ret_location, e);
    if (rc == ERR_UNAVAILABLE)
        err_wrap(e, "no store is named: give --store URL and --cluster NAME, or --config FILE");
    if (rc == 0 && !o->config)
        find_key_file(ret_location);
    if (rc == 0 && cluster && !str_eq(cluster, ret_location->cluster)) {
        free(ret_location->cluster);
        ret_location->cluster = mem_strdup(cluster);
    }
    return rc;
}

void store_location_deinit(struct store_location *p)
{
    free(p->store);
    free(p->cluster);
    free(p->key_file);
    *p = (struct store_location){0};
}
