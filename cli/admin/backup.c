/* SPDX-License-Identifier: Apache-2.0
 *
 * belay admin backup and verify. They read files, not belayd's API: a backup needs the rights of
 * belayd's user, and works when belayd is down.
 */
#include "cli/admin/backup.h"

#include "backup/backup.h"
#include "cli/cli.h"
#include "cli/store_location.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define STATE_DEFAULT "/var/lib/belay"
#define CONFIG_DEFAULT "/etc/belay/belayd.yaml"

static char *find_state(const struct admin_options *o)
{
    char *home = cli_home(), *database = mem_printf("%s/" BACKUP_DATABASE, home), *state;
    if (o->state)
        state = mem_strdup(o->state);
    else
        state = mem_strdup(fs_exists(database) ? home : STATE_DEFAULT);
    free(database);
    free(home);
    return state;
}

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

/* A key file in the state directory is copied with it; that of the default one is another
 * cluster's. */
static const char *key_file_outside(const struct store_location *l, const char *state)
{
    bool is_outside = l->key_file && !str_starts(l->key_file, state) &&
                      !str_eq(l->key_file, STATE_DEFAULT "/" BACKUP_KEY_FILE);
    return is_outside ? l->key_file : NULL;
}

static int make(const char *state, const char *config, const char *to, const struct seal *seal,
    bool json, struct err *e)
{
    struct store_location location = {0};
    struct contents *m = mem_alloc(sizeof(*m));
    int rc = config ? store_location_find(
                          &(struct store_location_options){.config = config}, &location, e)
                    : 0;
    if (rc == 0)
        rc = backup_make(&(struct backup_options){.state = state,
                             .config = config,
                             .key_file = key_file_outside(&location, state),
                             .to = to,
                             .seal = seal},
            m, e);
    store_location_deinit(&location);
    if (rc == 0 && !config)
        cli_warn("no configuration was found: name it with --config, or copy it yourself");
    if (rc == 0)
        print_backup(m, to, json);
    free(m);
    return rc;
}

int admin_backup(const struct admin_options *o, const char *word)
{
    char *state = find_state(o), *config = find_config(o, state);
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
