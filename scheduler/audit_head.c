/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/audit_head.h"

#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_BYTES 160 /* of a head, padded with blanks, with its newline */
#define KEY_BYTES_MAX (64 << 10)

struct audit_head_file {
    int fd;
    char key[65];
    struct audit_head now;
    bool is_frozen;
    int line; /* where the next one goes: 0 or 1 */
};

static void hmac_hex(const char *key, const char *text, char out[65])
{
    unsigned char mac[EVP_MAX_MD_SIZE];
    HMAC(EVP_sha256(), key, (int)strlen(key), (const unsigned char *)text, strlen(text), mac, NULL);
    str_hex(mac, 32, out);
}

static int read_key(const char *state, char key[65], struct err *e)
{
    char *path = mem_printf("%s/ca.key", state);
    struct buf text = {0};
    int rc = fs_read_secret(path, KEY_BYTES_MAX, &text, e);
    if (rc == 0)
        hmac_hex(buf_str(&text), "belay audit head", key);
    buf_wipe(&text);
    free(path);
    return rc;
}

static void mac_of(const char *key, const struct audit_head *head, char mac[65])
{
    char text[128];
    snprintf(text, sizeof(text), "%" PRId64 " %s", head->seq, head->hash);
    hmac_hex(key, text, mac);
}

/* False if the line is no head with a correct MAC. */
static bool parse(const char *key, const char *line, struct audit_head *ret_head)
{
    struct audit_head head = {0};
    char mac[65], expected[65];
    if (sscanf(line, "%" SCNd64 " %64[0-9a-f] %64[0-9a-f]", &head.seq, head.hash, mac) != 3)
        return false;
    mac_of(key, &head, expected);
    if (!str_secret_eq(mac, expected))
        return false;
    *ret_head = head;
    return true;
}

static void read_lines(int fd, const char *key, struct audit_head *ret_head, int *ret_next)
{
    char text[LINE_BYTES + 1];
    struct audit_head found;
    *ret_head = (struct audit_head){0};
    *ret_next = 0;
    for (int i = 0; i < 2; i++) {
        ssize_t n = pread(fd, text, LINE_BYTES, (off_t)i * LINE_BYTES);
        text[n > 0 ? n : 0] = '\0';
        if (!parse(key, text, &found) || found.seq <= ret_head->seq)
            continue;
        *ret_head = found;
        *ret_next = !i;
    }
}

int audit_head_open(const char *state, struct audit_head_file **ret_file, struct err *e)
{
    char *path = mem_printf("%s/audit.head", state);
    struct audit_head_file *f = mem_alloc(sizeof(*f));
    int rc = read_key(state, f->key, e);
    f->fd = rc == 0 ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (rc == 0 && f->fd < 0)
        rc = err_errno(e, errno, "open %s", path);
    if (rc == 0) {
        read_lines(f->fd, f->key, &f->now, &f->line);
        f->is_frozen = f->now.seq == 0 && lseek(f->fd, 0, SEEK_END) > 0;
        *ret_file = f;
    } else {
        audit_head_close(f);
    }
    free(path);
    return rc;
}

void audit_head_close(struct audit_head_file *f)
{
    if (!f)
        return;
    if (f->fd >= 0) {
        fsync(f->fd);
        close(f->fd);
    }
    free(f);
}

void audit_head_get(const struct audit_head_file *f, struct audit_head *ret_head)
{
    *ret_head = f->now;
}

void audit_head_freeze(struct audit_head_file *f)
{
    f->is_frozen = true;
}

void audit_head_put(struct audit_head_file *f, const struct audit_head *head)
{
    char line[LINE_BYTES + 1], mac[65];
    struct err e;
    if (head->seq <= f->now.seq || f->is_frozen)
        return;
    mac_of(f->key, head, mac);
    int n = snprintf(line, sizeof(line), "%" PRId64 " %s %s", head->seq, head->hash, mac);
    memset(line + n, ' ', (size_t)(LINE_BYTES - n));
    line[LINE_BYTES - 1] = '\n';
    if (pwrite(f->fd, line, LINE_BYTES, (off_t)f->line * LINE_BYTES) != LINE_BYTES) {
        err_errno(&e, errno, "write audit.head");
        log_warn("the head of the audit log could not be stored", log_err(&e));
        return;
    }
    f->now = *head;
    f->line = !f->line;
}

int audit_head_read(const char *state, struct audit_head *ret_head, struct err *e)
{
    char *path = mem_printf("%s/audit.head", state), key[65];
    int ignored, fd = -1, rc = read_key(state, key, e);
    if (rc == 0 && (fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
        rc = err_errno(e, errno, "open %s", path);
    if (rc == 0)
        read_lines(fd, key, ret_head, &ignored);
    if (fd >= 0)
        close(fd);
    free(path);
    return rc;
}
