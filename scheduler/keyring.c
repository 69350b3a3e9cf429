/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/keyring.h"

#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include <stdlib.h>
#include <string.h>

#define IDS_MAX 65536 /* limit of the file, in bytes */
#define IDS_HEAD                                                                                   \
    "# Of the keys that are or were in the key file of encrypted checkpoints. Take an id out "     \
    "when what was "                                                                               \
    "encrypted with its key may be lost.\n"

struct keyring {
    struct master master; /* master.n == 0: no keys */
    enum config_encryption encryption;
};

/* ---- the ids of all keys ---- */

static bool has_id(const struct master *m, const char *id)
{
    char own[CRYPT_ID_HEX + 1];
    for (size_t i = 0; i < m->n; i++) {
        master_key_id(m, i, own);
        if (str_eq(own, id))
            return true;
    }
    return false;
}

static int check_id(const struct master *m, const char *key_file, const char *ids_file,
    const char *id, struct err *e)
{
    if (!*id || *id == '#' || has_id(m, id))
        return 0;
    return err_set(e, ERR_CONFIG,
        "the key file of encrypted checkpoints, %s, %s the key %.16s: put it back from its copy, "
        "or, if what was encrypted with that key may be lost, take the id out of %s",
        key_file, m->n ? "lacks" : "is gone, and with it", id, ids_file);
}

static int check_ids(const struct master *m, const char *key_file, const char *ids_file,
    const char *text, struct err *e)
{
    char *copy = mem_strdup(text), *rest = copy, *line;
    int rc = 0;
    while (rc == 0 && (line = strsep(&rest, "\n")))
        rc = check_id(m, key_file, ids_file, line, e);
    free(copy);
    return rc;
}

static int note_ids(const struct master *m, const char *ids_file, struct buf *text, struct err *e)
{
    char id[CRYPT_ID_HEX + 1];
    size_t before = text->len;
    if (text->len == 0)
        buf_adds(text, IDS_HEAD);
    else if (text->data[text->len - 1] != '\n')
        buf_addc(text, '\n');
    for (size_t i = 0; i < m->n; i++) {
        master_key_id(m, i, id);
        if (!strstr(buf_str(text), id))
            buf_printf(text, "%s\n", id);
    }
    return text->len == before ? 0 : fs_write_atomic(ids_file, text->data, text->len, 0600, e);
}

/* ---- the key file ---- */

static int make(struct keyring *k, const struct config *c, const char *cluster_uid, struct err *e)
{
    int rc = master_make(c->key_file,
        "# The keys of this cluster's encrypted checkpoints: whoever has this file can read them; "
        "without it they are lost.\n"
        "# Keep a copy where the store is not. The first key is for new checkpoints "
        "(belayd(8)).\n",
        cluster_uid, e);
    if (rc == 0)
        log_warn("created the key file of encrypted checkpoints: keep a copy; without it they "
                 "cannot be read",
            log_s("file", c->key_file));
    return rc == 0 ? master_read(c->key_file, &k->master, e) : rc;
}

static int check_cluster(
    const struct keyring *k, const struct config *c, const char *cluster_uid, struct err *e)
{
    if (str_eq(k->master.cluster_uid, cluster_uid))
        return 0;
    return err_set(e, ERR_CONFIG,
        "%s is the key file of another cluster (%s; this one, by its database, is %s): every "
        "cluster has its own, name "
        "another with key_file:",
        c->key_file, k->master.cluster_uid, cluster_uid);
}

static int load(struct keyring *k, const struct config *c, const char *cluster_uid,
    const char *ids_file, struct err *e)
{
    struct buf ids = {0};
    int rc = fs_read(ids_file, IDS_MAX, &ids, e);
    if (rc == 0 || rc == ERR_NOT_FOUND)
        rc = master_read(c->key_file, &k->master, e);
    bool is_gone = rc == ERR_NOT_FOUND;
    if (rc == 0 || is_gone)
        rc = check_ids(&k->master, c->key_file, ids_file, buf_str(&ids), e);
    if (rc == 0 && is_gone && c->encryption != ENCRYPTION_NONE)
        rc = make(k, c, cluster_uid, e);
    if (rc == 0 && k->master.n > 0)
        rc = check_cluster(k, c, cluster_uid, e);
    if (rc == 0 && k->master.n > 0)
        rc = note_ids(&k->master, ids_file, &ids, e);
    buf_deinit(&ids);
    return rc;
}

int keyring_open(const struct config *config, const char *cluster_uid, struct keyring **ret_keyring,
    struct err *e)
{
    struct keyring *k = mem_alloc(sizeof(*k));
    char *ids_file = mem_printf("%s/checkpoint.key-ids", config->state_dir);
    k->encryption = config->encryption;
    int rc = load(k, config, cluster_uid, ids_file, e);
    free(ids_file);
    if (rc != 0)
        keyring_close(k);
    else
        *ret_keyring = k;
    return rc;
}

void keyring_close(struct keyring *k)
{
    if (!k)
        return;
    master_wipe(&k->master);
    free(k);
}

const struct master *keyring_master(const struct keyring *k)
{
    return k->master.n ? &k->master : NULL;
}

void keyring_fill(const struct keyring *k, int64_t job, struct wire_secrets *s)
{
    char hex[CRYPT_KEY_HEX + 1];
    if (k->master.n == 0)
        return;
    s->checkpoint_keys = mem_array(k->master.n, sizeof(*s->checkpoint_keys));
    for (; s->n_checkpoint_keys < k->master.n; s->n_checkpoint_keys++) {
        master_job_key(&k->master, s->n_checkpoint_keys, job, hex);
        s->checkpoint_keys[s->n_checkpoint_keys] = mem_strdup(hex);
    }
    explicit_bzero(hex, sizeof(hex));
    s->encrypts = k->encryption != ENCRYPTION_NONE;
    s->refuses_plain = k->encryption == ENCRYPTION_REQUIRED;
}
