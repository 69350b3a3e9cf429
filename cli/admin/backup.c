/* SPDX-License-Identifier: Apache-2.0
 *
 * belay admin backup and verify. They read files, not belayd's API: a backup needs the rights of
 * belayd's user, and works when belayd is down.
 */
#include "cli/admin/backup.h"

#include "backup/backup.h"
#include "cli/admin/state.h"
#include "cli/cli.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/yaml.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CONFIG_DEFAULT "/etc/belay/belayd.yaml"

/* NULL if there is none. */
static char *find_config(const struct admin_options *o, const char *state)
{
    char *own = mem_printf("%s/" BACKUP_CONFIG, state);
    if (o->config || !fs_exists(own)) {
        free(own);
        own = o->config || fs_exists(CONFIG_DEFAULT)
                  ? mem_strdup(o->config ? o->config : CONFIG_DEFAULT)
                  : NULL;
    }
    return own;
}

/* A directory gets a name with the time. */
static char *target(const char *to, struct wall now)
{
    struct stat st;
    time_t s = now.ms / 1000;
    struct tm tm;
    char at[32];
    if (stat(to, &st) != 0 || !S_ISDIR(st.st_mode))
        return mem_strdup(to);
    strftime(at, sizeof(at), "%Y%m%dT%H%M%SZ", gmtime_r(&s, &tm));
    return mem_printf("%s/belay-%s.tar", to, at);
}

static void print_backup(const struct contents *m, const char *file, bool json)
{
    char size[32];
    int64_t bytes = 0;
    for (size_t i = 0; i < m->n_files; i++)
        bytes += m->files[i].bytes;
    if (json) {
        struct buf text = {0};
        json_t *v;
        contents_format(m, &text);
        if (json_parse(buf_str(&text), text.len, CONTENTS_BYTES_MAX, &v, NULL) == 0) {
            json_object_set_new(v, "file", json_text(file));
            cli_print_json(v);
            json_decref(v);
        }
        buf_deinit(&text);
        return;
    }
    str_format_bytes((uint64_t)bytes, size, sizeof(size));
    printf("%s: %zu files, %s, of cluster %s, made by belay %s at %s\n", file, m->n_files, size,
        m->cluster_uid, m->belay, cli_local(m->made_at, true, (char[CLI_LOCAL_MAX]){0}));
}

/* Of a configuration: belayd checks the rest. */
struct named_files {
    char *key_file, *secret_key_file; /* NULL = not named */
};

static char *named(const struct yaml_node *root, const char *key)
{
    for (size_t i = 0; i < root->n_items; i++)
        if (str_eq(root->items[i]->key, key) && root->items[i]->type == YAML_SCALAR &&
            !yaml_is_null(root->items[i]))
            return mem_strdup(root->items[i]->text);
    return NULL;
}

static int read_config(const char *config, struct named_files *ret_files, struct err *e)
{
    struct buf text = {0};
    struct yaml_node *root = NULL;
    int rc = fs_read(config, YAML_BYTES_MAX, &text, e);
    if (rc == 0)
        rc = yaml_parse(config, buf_str(&text), text.len, &root, e);
    if (rc == 0) {
        ret_files->key_file = named(root, "key_file");
        ret_files->secret_key_file = named(root, "secret_key_file");
    }
    yaml_node_free(root);
    buf_deinit(&text);
    return rc;
}

static void warn_of_missing(const struct contents *m, const char *config)
{
    if (!config)
        cli_warn("no configuration was found: name it with --config, or copy it yourself");
    if (!contents_find(m, BACKUP_SECRET_KEY_FILE))
        cli_warn("the keys of the database are not in the state directory (a credential of "
                 "belayd's unit?): without a copy of them, the backup's secrets cannot be read");
}

static int make(const char *state, const char *config, const char *to, const struct seal *seal,
    bool json, struct err *e)
{
    struct named_files files = {0};
    struct contents *m = mem_alloc(sizeof(*m));
    int rc = config ? read_config(config, &files, e) : 0;
    if (rc == 0)
        rc = backup_make(&(struct backup_options){.state = state,
                             .config = config,
                             .key_file = files.key_file,
                             .secret_key_file = files.secret_key_file,
                             .to = to,
                             .seal = seal},
            m, e);
    if (rc == 0) {
        warn_of_missing(m, config);
        print_backup(m, to, json);
    }
    free(files.key_file);
    free(files.secret_key_file);
    free(m);
    return rc;
}

int admin_backup(const struct admin_options *o, const char *word)
{
    char *state = admin_find_state(o->state), *config = find_config(o, state);
    char *to = target(word, clock_wall(&clock_system));
    struct seal *seal = NULL;
    struct err e;
    int rc = seal_open(&(struct seal_options){.passphrase_file = o->passphrase_file,
                           .certificate_file = o->encrypt_to},
        &seal, &e);
    if (rc == 0)
        rc = make(state, config, to, seal, o->json, &e);
    if (rc != 0)
        cli_error("%s", e.text);
    seal_close(seal);
    free(to);
    free(config);
    free(state);
    return rc == 0 ? CLI_OK : CLI_FAILED;
}

int admin_verify(const struct admin_options *o, const char *file)
{
    const char *tmp = getenv("TMPDIR");
    char *dir = mem_printf("%s/belay-verify.XXXXXX", tmp && tmp[0] ? tmp : "/var/tmp");
    struct contents *m = mem_alloc(sizeof(*m));
    struct seal *seal = NULL;
    struct err e, ignored;
    bool made = mkdtemp(dir) != NULL;
    int rc = made ? 0 : err_errno(&e, errno, "create %s", dir);
    if (rc == 0)
        rc = seal_open(
            &(struct seal_options){.passphrase_file = o->passphrase_file, .key_file = o->key_file},
            &seal, &e);
    if (rc == 0)
        rc = backup_unpack(file, seal, dir, m, &e);
    if (rc == 0)
        rc = backup_check_database(dir, m, 0, &e);
    if (made && fs_remove_tree(dir, &ignored) != 0)
        cli_warn("%s", ignored.text);
    if (rc == 0)
        print_backup(m, file, o->json);
    else
        cli_error("%s", e.text);
    seal_close(seal);
    free(m);
    free(dir);
    return rc == 0 ? CLI_OK : CLI_FAILED;
}
