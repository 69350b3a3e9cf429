/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing a backup. The files beside the database are read after it was copied: so they may have a
 * key that the copy does not need, and never lack one that it does.
 */
#include "backup/backup.h"

#include "backup/archive.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "db/copy.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE_BYTES (32 << 20) /* of the database, as an entry of its own */
#define PIECES_MAX 32768
#define FILE_BYTES_MAX (1 << 20)

struct writer {
    const struct backup_options *o;
    int fd;
    const char *part; /* the path of fd */
    struct contents *m;
    struct buf sealed;
};

static int add_entry(struct writer *w, const char *name, const void *p, size_t n, struct err *e)
{
    char entry[ARCHIVE_NAME_MAX];
    const int64_t mtime = w->m->made_at.ms / 1000;
    if (!w->o->seal)
        return archive_add(w->fd, name, p, n, mtime, e);
    snprintf(entry, sizeof(entry), "%s" SEAL_SUFFIX, name);
    int rc = seal_encrypt(w->o->seal, p, n, &w->sealed, e);
    return rc != 0 ? rc : archive_add(w->fd, entry, w->sealed.data, w->sealed.len, mtime, e);
}

static struct contents_file *new_file(struct writer *w, const char *name)
{
    struct contents_file *f = &w->m->files[w->m->n_files++];
    STR_COPY(f->name, name);
    return f;
}

static void hex_of(EVP_MD_CTX *hash, char out[65])
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    EVP_DigestFinal_ex(hash, digest, NULL);
    str_hex(digest, 32, out);
}

/* ---- the database ---- */

static int add_piece(struct writer *w, int fd, char *piece, int i, size_t *ret_n, struct err *e)
{
    char name[32];
    size_t n = 0;
    ssize_t r = 1;
    while (n < PIECE_BYTES && (r = read(fd, piece + n, PIECE_BYTES - n)) > 0)
        n += (size_t)r;
    *ret_n = n;
    if (r < 0)
        return err_errno(e, errno, "read the copy of the database");
    if (i >= PIECES_MAX)
        return err_set(e, ERR_UNSUPPORTED, "the database is too large for a backup");
    snprintf(name, sizeof(name), BACKUP_DATABASE ".%05d", i);
    return n == 0 && i > 0 ? 0 : add_entry(w, name, piece, n, e);
}

static int add_pieces(struct writer *w, int fd, struct err *e)
{
    struct contents_file *f = new_file(w, BACKUP_DATABASE);
    EVP_MD_CTX *hash = EVP_MD_CTX_new();
    char *piece = mem_alloc(PIECE_BYTES);
    size_t n = PIECE_BYTES;
    int rc = 0;
    EVP_DigestInit_ex(hash, EVP_sha256(), NULL);
    for (int i = 0; rc == 0 && n == PIECE_BYTES; i++) {
        rc = add_piece(w, fd, piece, i, &n, e);
        EVP_DigestUpdate(hash, piece, n);
        f->bytes += (int64_t)n;
    }
    hex_of(hash, f->sha256);
    EVP_MD_CTX_free(hash);
    free(piece);
    return rc;
}

static int add_database(struct writer *w, struct err *e)
{
    char *path = mem_printf("%s/" BACKUP_DATABASE, w->o->state);
    char *copy = mem_printf("%s.db", w->part);
    struct db_identity found = {0};
    int rc = db_copy(path, copy, e);
    if (rc == 0) {
        int fd = open(copy, O_RDONLY | O_CLOEXEC);
        rc = fd < 0 ? err_errno(e, errno, "open %s", copy) : add_pieces(w, fd, e);
        if (fd >= 0)
            close(fd);
    }
    if (rc == 0)
        rc = db_identify(copy, &found, e);
    STR_COPY(w->m->cluster_uid, found.uid);
    w->m->schema = found.schema;
    w->m->epoch = found.epoch;
    unlink(copy);
    free(path);
    free(copy);
    return rc;
}

/* ---- the other files ---- */

static int add_file(struct writer *w, const char *path, const char *name, struct err *e)
{
    struct buf text = {0};
    int rc = fs_read(path, FILE_BYTES_MAX, &text, e);
    if (rc == 0 && w->m->n_files >= CONTENTS_FILES_MAX)
        rc = err_set(e, ERR_UNSUPPORTED,
            "%s: more than %d files: move those away that are not "
            "belayd's",
            w->o->state, CONTENTS_FILES_MAX);
    if (rc == 0) {
        struct contents_file *f = new_file(w, name);
        EVP_MD_CTX *hash = EVP_MD_CTX_new();
        EVP_DigestInit_ex(hash, EVP_sha256(), NULL);
        EVP_DigestUpdate(hash, text.data ? text.data : "", text.len);
        hex_of(hash, f->sha256);
        EVP_MD_CTX_free(hash);
        f->bytes = (int64_t)text.len;
        rc = add_entry(w, name, text.data ? text.data : "", text.len, e);
    }
    buf_wipe(&text);
    return rc;
}

/* Files of the state directory that a backup leaves out: the database, which is copied apart, logs,
 * locks, the head of the audit log, which would be ahead of the copy, and what a start writes. */
static bool is_left_out(const char *name)
{
    static const char *const names[] = {"belayd.json", "audit.head", MANIFEST_NAME, NULL};
    return !archive_name_is_valid(name) || str_starts(name, BACKUP_DATABASE) ||
           str_is_one_of(name, names) || str_ends(name, ".log") || str_ends(name, ".lock") ||
           str_ends(name, ".pid") || str_ends(name, SEAL_SUFFIX);
}

static bool is_file(int dir, const char *name)
{
    struct stat st;
    return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode);
}

static int add_state_files(struct writer *w, struct err *e)
{
    DIR *dir = opendir(w->o->state);
    int rc = 0;
    if (!dir)
        return err_errno(e, errno, "list %s", w->o->state);
    for (struct dirent *d; rc == 0 && (errno = 0, d = readdir(dir));) {
        if (is_left_out(d->d_name) || !is_file(dirfd(dir), d->d_name) ||
            contents_find(w->m, d->d_name))
            continue;
        char *path = mem_printf("%s/%s", w->o->state, d->d_name);
        rc = add_file(w, path, d->d_name, e);
        free(path);
    }
    if (rc == 0 && errno)
        rc = err_errno(e, errno, "list %s", w->o->state);
    closedir(dir);
    return rc;
}

/* A configuration or key file elsewhere takes precedence over one of the same name in the state
 * directory. */
static int add_files(struct writer *w, struct err *e)
{
    int rc = 0;
    if (w->o->config) {
        char *from = fs_absolute(w->o->config);
        STR_COPY(w->m->config, from);
        free(from);
        rc = add_file(w, w->o->config, BACKUP_CONFIG, e);
    }
    if (rc == 0 && w->o->key_file)
        rc = add_file(w, w->o->key_file, BACKUP_KEY_FILE, e);
    if (rc == 0 && w->o->secret_key_file)
        rc = add_file(w, w->o->secret_key_file, BACKUP_SECRET_KEY_FILE, e);
    return rc != 0 ? rc : add_state_files(w, e);
}

/* ---- the whole ---- */

static int write_all(struct writer *w, struct err *e)
{
    struct buf text = {0};
    int rc = add_database(w, e);
    if (rc == 0)
        rc = add_files(w, e);
    if (rc == 0) {
        contents_format(w->m, &text);
        rc = add_entry(w, MANIFEST_NAME, text.data, text.len, e);
    }
    if (rc == 0)
        rc = archive_end(w->fd, e);
    if (rc == 0 && fsync(w->fd) != 0)
        rc = err_errno(e, errno, "write it to the disk");
    buf_deinit(&text);
    return rc;
}

/* A link, unlike a rename, replaces nothing. */
static int publish(const char *part, const char *to, struct err *e)
{
    char *copy = mem_strdup(to), *slash = strrchr(copy, '/');
    int rc = link(part, to) == 0 ? 0 : err_errno(e, errno, "create %s", to);
    if (slash)
        slash[slash == copy] = '\0';
    if (rc == 0)
        rc = fs_sync_dir(slash ? copy : ".", e);
    free(copy);
    return rc;
}

int backup_make(const struct backup_options *o, struct contents *ret_contents, struct err *e)
{
    struct contents *m = mem_alloc(sizeof(*m));
    char *part = mem_printf("%s.XXXXXX", o->to);
    struct writer w = {.o = o, .m = m, .fd = -1, .part = part};
    int rc = fs_exists(o->to)
                 ? err_set(e, ERR_CONFLICT, "it exists already: name another file, or remove it")
                 : 0;
    STR_COPY(m->belay, BELAY_VERSION);
    m->made_at = clock_wall(&clock_system);
    if (rc == 0 && (w.fd = mkostemp(part, O_CLOEXEC)) < 0)
        rc = err_errno(e, errno, "create %s", part);
    if (rc == 0)
        rc = write_all(&w, e);
    if (rc == 0)
        rc = publish(part, o->to, e);
    if (w.fd >= 0) {
        close(w.fd);
        unlink(part);
    }
    if (rc == 0)
        *ret_contents = *m;
    buf_deinit(&w.sealed);
    free(part);
    free(m);
    return rc == 0 ? 0 : err_wrap(e, "back up %s to %s", o->state, o->to);
}
