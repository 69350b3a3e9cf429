/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading a backup. Everything is unpacked to a directory of its own and checked there; only then
 * does backup_install touch the state directory.
 */
#include "backup/backup.h"

#include "backup/archive.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "db/audit_log.h"
#include "db/copy.h"
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What was unpacked of a file, to be compared with the manifest. */
struct unpacked {
    struct contents_file f;
    EVP_MD_CTX *hash;
};

struct reader {
    const char *dir;
    const struct seal *seal;
    int fd;
    struct unpacked files[CONTENTS_FILES_MAX];
    size_t n;
    int pieces; /* of the database */
    bool has_manifest;
    struct contents *m;
};

/* ---- entries ---- */

/* The file that an entry belongs to: "belay.db.00003" is a piece of "belay.db". */
static int name_of(struct reader *r, const char *entry, char *name, size_t size, struct err *e)
{
    char expected[ARCHIVE_NAME_MAX];
    str_copy(name, size, entry);
    size_t n = strlen(name), suffix = strlen(SEAL_SUFFIX);
    bool is_sealed = str_ends(name, SEAL_SUFFIX);
    if (is_sealed)
        name[n - suffix] = '\0';
    if (is_sealed && !r->seal)
        return err_set(e, ERR_DENIED,
            "it is encrypted: give --passphrase-file, or --key-file with the key of the "
            "certificate that it was encrypted to");
    if (!is_sealed && r->seal)
        return err_set(e, ERR_INVALID, "it is not encrypted: leave out the passphrase or key");
    if (!str_starts(name, BACKUP_DATABASE "."))
        return 0;
    snprintf(expected, sizeof(expected), BACKUP_DATABASE ".%05d", r->pieces++);
    if (!str_eq(name, expected))
        return err_set(e, ERR_CORRUPT, "it has %s where %s was expected", name, expected);
    str_copy(name, size, BACKUP_DATABASE);
    return 0;
}

static struct unpacked *find(struct reader *r, const char *name)
{
    for (size_t i = 0; i < r->n; i++)
        if (str_eq(r->files[i].f.name, name))
            return &r->files[i];
    return NULL;
}

/* NULL after an error: only the database has several entries. */
static struct unpacked *file_for(struct reader *r, const char *name, struct err *e)
{
    struct unpacked *u = find(r, name);
    if (u && (!str_eq(name, BACKUP_DATABASE) || r->pieces == 1)) {
        err_set(e, ERR_CORRUPT, "it has %s twice", name);
        return NULL;
    }
    if (!u && r->n == CONTENTS_FILES_MAX) {
        err_set(e, ERR_CORRUPT, "it has more than %d files", CONTENTS_FILES_MAX);
        return NULL;
    }
    if (!u) {
        u = &r->files[r->n++];
        STR_COPY(u->f.name, name);
        u->hash = EVP_MD_CTX_new();
        EVP_DigestInit_ex(u->hash, EVP_sha256(), NULL);
    }
    return u;
}

static int append(struct reader *r, const char *name, const void *p, size_t n, struct err *e)
{
    struct unpacked *u = file_for(r, name, e);
    if (!u)
        return e->kind;
    bool is_new = u->f.bytes == 0 && (!str_eq(name, BACKUP_DATABASE) || r->pieces == 1);
    char *path = mem_printf("%s/%s", r->dir, name);
    int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | (is_new ? O_CREAT | O_EXCL : 0), 0600);
    int rc = fd < 0 ? err_errno(e, errno, "write %s", path) : fs_write_all(fd, p, n, e);
    if (rc == 0 && fsync(fd) != 0)
        rc = err_errno(e, errno, "write %s", path);
    if (fd >= 0)
        close(fd);
    EVP_DigestUpdate(u->hash, p, n);
    u->f.bytes += (int64_t)n;
    free(path);
    return rc;
}

static int take_entry(
    struct reader *r, const struct archive_entry *entry, const char *content, struct err *e)
{
    char name[ARCHIVE_NAME_MAX];
    struct buf plain = {0};
    const char *p = content;
    size_t n = entry->size;
    int rc = name_of(r, entry->name, name, sizeof(name), e);
    if (rc == 0 && r->seal) {
        rc = seal_decrypt(r->seal, content, entry->size, &plain, e);
        p = buf_str(&plain);
        n = plain.len;
    }
    if (rc == 0 && r->has_manifest)
        rc = err_set(e, ERR_CORRUPT, "it has %s after the manifest", name);
    if (rc == 0 && str_eq(name, MANIFEST_NAME)) {
        r->has_manifest = true;
        rc = contents_parse(p, n, r->m, e);
    } else if (rc == 0) {
        rc = append(r, name, p, n, e);
    }
    buf_wipe(&plain);
    return rc;
}

static int read_entries(struct reader *r, struct err *e)
{
    struct archive_entry entry;
    bool is_end = false;
    int rc = 0;
    while (rc == 0 && (rc = archive_next(r->fd, &entry, &is_end, e)) == 0 && !is_end) {
        size_t padded = archive_padded(entry.size);
        char *content = mem_alloc(padded + 1);
        rc = archive_read(r->fd, content, padded, e);
        if (rc == 0)
            rc = take_entry(r, &entry, content, e);
        free(content);
    }
    return rc;
}

/* ---- comparison with the manifest ---- */

static int compare(struct reader *r, struct err *e)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    if (!r->has_manifest)
        return err_set(
            e, ERR_CORRUPT, "it has no manifest: it is no backup, or not completely written");
    for (size_t i = 0; i < r->n; i++) {
        struct contents_file *f = &r->files[i].f;
        const struct contents_file *expected = contents_find(r->m, f->name);
        EVP_DigestFinal_ex(r->files[i].hash, digest, NULL);
        str_hex(digest, 32, f->sha256);
        if (!expected)
            return err_set(e, ERR_CORRUPT, "its manifest does not know %s", f->name);
        if (f->bytes != expected->bytes || !str_eq(f->sha256, expected->sha256))
            return err_set(
                e, ERR_CORRUPT, "%s is damaged: its hash is not the manifest's", f->name);
    }
    for (size_t i = 0; i < r->m->n_files; i++)
        if (!find(r, r->m->files[i].name))
            return err_set(e, ERR_CORRUPT, "%s is missing", r->m->files[i].name);
    return find(r, BACKUP_DATABASE) ? 0 : err_set(e, ERR_CORRUPT, "it has no database");
}

int backup_unpack(const char *file, const struct seal *seal, const char *dir,
    struct contents *ret_contents, struct err *e)
{
    struct reader *r = mem_alloc(sizeof(*r));
    *r = (struct reader){.dir = dir, .seal = seal, .m = mem_alloc(sizeof(*r->m))};
    int rc = 0;
    r->fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (r->fd < 0)
        rc = err_errno(e, errno, "open it");
    if (rc == 0)
        rc = read_entries(r, e);
    if (rc == 0)
        rc = compare(r, e);
    if (rc == 0)
        *ret_contents = *r->m;
    if (r->fd >= 0)
        close(r->fd);
    for (size_t i = 0; i < r->n; i++)
        EVP_MD_CTX_free(r->files[i].hash);
    free(r->m);
    free(r);
    return rc == 0 ? 0 : err_wrap(e, "the backup %s", file);
}

/* ---- the database ---- */

static int check_audit_log(struct db *d, struct err *e)
{
    struct db_reader *r;
    struct audit_head head;
    int rc = db_reader_of(d, &r, e);
    if (rc == 0) {
        rc = audit_log_verify(r, NULL, &head, e);
        db_reader_close(r);
    }
    return rc;
}

int backup_check_database(const char *dir, const struct contents *m, int64_t epoch, struct err *e)
{
    char *path = mem_printf("%s/" BACKUP_DATABASE, dir);
    struct db_identity found;
    struct db *d = NULL;
    int rc = db_open(path, &d, e);
    if (rc == 0)
        rc = db_check_integrity(d, e);
    if (rc == 0)
        rc = check_audit_log(d, e);
    if (rc == 0)
        rc = db_identify(path, &found, e);
    if (rc == 0 && !str_eq(found.uid, m->cluster_uid))
        rc = err_set(e, ERR_CORRUPT, "the database is of cluster %s, the manifest of %s", found.uid,
            m->cluster_uid);
    if (rc == 0 && epoch > 0)
        rc = db_begin_epoch(d, epoch, BACKUP_SKIP, e);
    db_close(d);
    free(path);
    return rc;
}

/* ---- the state directory ---- */

int backup_lock(const char *state, int *ret_fd, struct err *e)
{
    char *database = mem_printf("%s/" BACKUP_DATABASE, state);
    char *lock = mem_printf("%s.lock", database);
    int fd = -1, rc = fs_mkdirs(state, 0700, e);
    if (rc == 0 && (fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600)) < 0)
        rc = err_errno(e, errno, "open %s", lock);
    if (rc == 0 && fs_lock(fd) != 0)
        rc = errno == EWOULDBLOCK
                 ? err_set(e, ERR_CONFLICT,
                       "a belayd runs with the state directory %s: stop it first (systemctl stop "
                       "belayd, or belay down)",
                       state)
                 : err_errno(e, errno, "lock %s", lock);
    if (rc == 0 && fs_exists(database))
        rc = err_set(e, ERR_CONFLICT,
            "the state directory %s has a database: name an empty directory, or move its files "
            "away first; nothing of it is replaced",
            state);
    if (rc != 0 && fd >= 0)
        close(fd);
    if (rc == 0)
        *ret_fd = fd;
    free(database);
    free(lock);
    return rc;
}

void backup_unlock(int fd)
{
    close(fd);
}

static int install_file(
    const char *dir, const char *name, const char *state, const struct stat *owner, struct err *e)
{
    char *from = mem_printf("%s/%s", dir, name), *to = mem_printf("%s/%s", state, name);
    int rc = 0;
    if (geteuid() == 0 && chown(from, owner->st_uid, owner->st_gid) != 0)
        rc = err_errno(e, errno, "give %s to the owner of %s", from, state);
    else if (rename(from, to) != 0)
        rc = err_errno(e, errno, "move %s to %s", from, to);
    free(from);
    free(to);
    return rc;
}

int backup_install(const char *dir, const struct contents *m, const char *state, struct err *e)
{
    struct stat owner;
    if (stat(state, &owner) != 0)
        return err_errno(e, errno, "examine %s", state);
    int rc = 0;
    for (size_t i = 0; i < m->n_files && rc == 0; i++)
        if (!str_eq(m->files[i].name, BACKUP_DATABASE))
            rc = install_file(dir, m->files[i].name, state, &owner, e);
    if (rc == 0)
        rc = fs_sync_dir(state, e);
    if (rc == 0)
        rc = install_file(dir, BACKUP_DATABASE, state, &owner, e);
    return rc != 0 ? rc : fs_sync_dir(state, e);
}
