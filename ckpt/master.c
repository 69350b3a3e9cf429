/* SPDX-License-Identifier: Apache-2.0 */
#include "ckpt/master.h"
#include "base/buf.h"
#include "base/fs.h"
#include "base/prng.h"
#include "base/str.h"
#include <inttypes.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>

#define LINE_MAX_BYTES 256
#define CLUSTER "cluster "
#define KEY "key "

void master_wipe(struct master *m)
{
    OPENSSL_cleanse(m, sizeof(*m));
}

static bool is_uid(const char *s)
{
    return strlen(s) == MASTER_UID_HEX && strspn(s, "0123456789abcdef") == MASTER_UID_HEX;
}

static bool has_key(const struct master *m, const unsigned char *key)
{
    for (size_t i = 0; i < m->n; i++)
        if (memcmp(m->keys[i], key, CRYPT_KEY_BYTES) == 0)
            return true;
    return false;
}

static int take_key(struct master *m, const char *hex, struct err *e)
{
    unsigned char key[CRYPT_KEY_BYTES];
    int rc = 0;

    if (!str_unhex(hex, key, sizeof(key)))
        rc = err_set(e, ERR_INVALID, "a key is %d lower-case hex digits", CRYPT_KEY_HEX);
    else if (m->n == CRYPT_KEYS_MAX)
        rc = err_set(e, ERR_INVALID, "more than %d keys", CRYPT_KEYS_MAX);
    else if (has_key(m, key))
        rc = err_set(e, ERR_INVALID, "duplicate key");
    else
        memcpy(m->keys[m->n++], key, sizeof(key));
    OPENSSL_cleanse(key, sizeof(key));
    return rc;
}

static int take_line(struct master *m, const char *line, struct err *e)
{
    if (!*line || *line == '#')
        return 0;
    if (str_starts(line, KEY))
        return take_key(m, line + strlen(KEY), e);
    if (!str_starts(line, CLUSTER))
        return err_set(e, ERR_INVALID, "expected \"cluster NUMBER\", \"key HEX\" or a comment");
    if (m->cluster_uid[0] || !is_uid(line + strlen(CLUSTER)))
        return err_set(
            e, ERR_INVALID, "expected one line \"cluster\" with %d hex digits", MASTER_UID_HEX);
    STR_COPY(m->cluster_uid, line + strlen(CLUSTER));
    return 0;
}

int master_parse(const char *file, const char *text, size_t n, struct master *ret, struct err *e)
{
    struct master m = {0};
    char line[LINE_MAX_BYTES];
    const char *end = text + n;
    int number = 0, rc = 0;

    while (!rc && text < end) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        size_t len = (size_t)((newline ? newline : end) - text);

        number++;
        if (len >= sizeof(line) || memchr(text, 0, len)) {
            rc = err_set(e, ERR_INVALID, "it is too long, or not text");
        } else {
            memcpy(line, text, len);
            line[len] = '\0';
            rc = take_line(&m, line, e);
        }
        text += len + (newline != NULL);
    }
    if (rc)
        err_wrap(e, "key file %s, line %d", file, number);
    else if (!m.cluster_uid[0] || m.n == 0)
        rc = err_set(e, ERR_INVALID, "key file %s: it has no line \"%s\"", file,
            m.n ? "cluster NUMBER" : "key HEX");
    if (!rc)
        *ret = m;
    OPENSSL_cleanse(line, sizeof(line));
    master_wipe(&m);
    return rc;
}

int master_read(const char *path, struct master *ret, struct err *e)
{
    struct buf text = {0};
    int rc = fs_read_secret(path, MASTER_FILE_MAX, &text, e);

    if (rc)
        err_wrap(e, "the key file");
    else
        rc = master_parse(path, buf_str(&text), text.len, ret, e);
    buf_wipe(&text);
    return rc;
}

int master_make(const char *path, const char *about, const char *cluster_uid, struct err *e)
{
    char hex[CRYPT_KEY_HEX + 1];
    struct buf text = {0};
    int rc;

    random_hex(CRYPT_KEY_BYTES, hex);
    buf_printf(&text, "%s" CLUSTER "%s\n" KEY "%s\n", about, cluster_uid, hex);
    rc = fs_create_atomic(path, text.data, text.len, 0600, e);
    OPENSSL_cleanse(hex, sizeof(hex));
    buf_wipe(&text);
    return rc ? err_wrap(e, "create the key file") : 0;
}

void master_key_id(const struct master *m, size_t i, char out[CRYPT_ID_HEX + 1])
{
    static const char what[] = "belay master id";
    unsigned char id[CRYPT_KEY_BYTES];

    crypt_derive(m->keys[i], what, strlen(what), id);
    str_hex(id, CRYPT_ID_HEX / 2, out);
}

static void derive_job(
    const struct master *m, size_t i, int64_t job, unsigned char out[CRYPT_KEY_BYTES])
{
    char what[128];
    int n = snprintf(what, sizeof(what), "belay job %s %" PRId64, m->cluster_uid, job);

    crypt_derive(m->keys[i], what, (size_t)n, out);
}

void master_job_key(const struct master *m, size_t i, int64_t job, char out[CRYPT_KEY_HEX + 1])
{
    unsigned char key[CRYPT_KEY_BYTES];

    derive_job(m, i, job, key);
    str_hex(key, sizeof(key), out);
    OPENSSL_cleanse(key, sizeof(key));
}

void master_job_crypt(const struct master *m, int64_t job, struct ckpt_crypt *ret)
{
    unsigned char key[CRYPT_KEY_BYTES];

    for (size_t i = 0; i < m->n; i++) {
        derive_job(m, i, job, key);
        crypt_add_bytes(ret, key);
    }
    OPENSSL_cleanse(key, sizeof(key));
}
