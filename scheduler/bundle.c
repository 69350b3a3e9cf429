/* SPDX-License-Identifier: Apache-2.0
 *
 * Bundles of the agent (see bundle.h).
 */
#include "scheduler/bundle.h"

#include "base/mem.h"
#include "base/str.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE ((size_t)1 << 20)

static const char *const arches[BUNDLE_ARCHES] = {
    [BUNDLE_X86_64] = "x86_64", [BUNDLE_AARCH64] = "aarch64"};

static int hash_pieces(int fd, EVP_MD_CTX *md, const char *path, int64_t *ret_size, struct err *e)
{
    char *piece = mem_alloc(PIECE);
    ssize_t n;
    *ret_size = 0;
    while ((n = pread(fd, piece, PIECE, (off_t)*ret_size)) > 0 && *ret_size <= BUNDLE_BYTES_MAX) {
        EVP_DigestUpdate(md, piece, (size_t)n);
        *ret_size += n;
    }
    int rc = n < 0 ? err_errno(e, errno, "reading %s", path) : 0;
    if (rc == 0 && *ret_size > BUNDLE_BYTES_MAX)
        rc = err_set(e, ERR_INVALID,
            "%s: a bundle of the agent is at most %lld bytes: install belay again", path,
            (long long)BUNDLE_BYTES_MAX);
    free(piece);
    return rc;
}

static int hash(struct bundle *b, const char *path, struct err *e)
{
    unsigned char digest[32];
    EVP_MD_CTX *md = EVP_MD_CTX_new();
    if (!md || !EVP_DigestInit_ex(md, EVP_sha256(), NULL))
        abort(); /* out of memory */
    int rc = hash_pieces(b->fd, md, path, &b->size_bytes, e);
    EVP_DigestFinal_ex(md, digest, NULL);
    EVP_MD_CTX_free(md);
    for (size_t i = 0; i < sizeof(digest); i++)
        snprintf(b->sha256 + 2 * i, 3, "%02x", digest[i]);
    return rc;
}

static int open_one(const char *dir, const char *arch, struct bundle *b, struct err *e)
{
    char *path = mem_printf("%s/agent-%s.tar.gz", dir, arch);
    int rc = 0;
    b->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (b->fd >= 0)
        rc = hash(b, path, e);
    else if (errno != ENOENT && errno != ENOTDIR)
        rc = err_errno(e, errno, "opening %s", path);
    free(path);
    return rc;
}

int bundles_open_dir(const char *dir, struct bundles *ret_bundles, struct err *e)
{
    struct bundles b = {0};
    int rc = 0;
    for (int i = 0; i < BUNDLE_ARCHES; i++)
        b.of[i].fd = -1;
    for (int i = 0; i < BUNDLE_ARCHES && rc == 0; i++)
        rc = open_one(dir, arches[i], &b.of[i], e);
    if (rc == 0)
        *ret_bundles = b;
    else
        bundles_close(&b);
    return rc;
}

int bundles_open(struct bundles *ret_bundles, struct err *e)
{
    static const char *const paths[] = {"%s/../share/belay/bundle", "%s/../bundle"};
    char own[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", own, sizeof(own) - 1);
    if (n <= 0)
        return err_errno(e, errno, "finding belayd's own directory");
    own[n] = '\0';
    *strrchr(own, '/') = '\0';
    char *dir = NULL;
    for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
        free(dir);
        dir = mem_printf(paths[i], own);
        if (access(dir, F_OK) == 0)
            break;
    }
    int rc = bundles_open_dir(dir, ret_bundles, e);
    free(dir);
    return rc;
}

void bundles_close(struct bundles *b)
{
    for (int i = 0; i < BUNDLE_ARCHES; i++)
        if (b->of[i].fd > 0)
            close(b->of[i].fd);
    *b = (struct bundles){0};
}

const struct bundle *bundles_find(const struct bundles *b, const char *arch, struct err *e)
{
    char shown[STR_SHOW_MAX];
    for (int i = 0; i < BUNDLE_ARCHES; i++) {
        if (!str_eq(arches[i], arch))
            continue;
        if (b->of[i].fd > 0)
            return &b->of[i];
        err_set(e, ERR_NOT_FOUND,
            "belayd has no agent for %s: put agent-%s.tar.gz of a build for it into "
            "share/belay/bundle and restart belayd, or install belay-agent of belayd's version in "
            "the image",
            arch, arch);
        return NULL;
    }
    err_set(e, ERR_INVALID, "arch: expected x86_64 or aarch64, found %s", str_show(arch, shown));
    return NULL;
}
