/* SPDX-License-Identifier: Apache-2.0
 *
 * See keyring.h. A key is of type "user" (keyrings(7)): the time of storing, a newline, and the
 * secrets in wire format. It is linked to the user's keyring, not to a session's, which ends with
 * the agent under systemd; so no process possesses it, and the user's permissions apply.
 */
#include "agent/keyring.h"

#include "base/mem.h"
#include <errno.h>
#include <inttypes.h>
#include <linux/keyctl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAYLOAD_MAX 32767L /* the kernel's limit for this type */
/* all for possessor and user; none for group and others */
#define PERMISSIONS 0x3f3f0000L
#define TYPE "user"

static char *name_of(const char *dir)
{
    return mem_printf("belay:%s", dir);
}

/* Returns the key's serial number, or -1 with errno set. */
static long find(const char *dir)
{
    char *name = name_of(dir);
    long key = syscall(SYS_keyctl, KEYCTL_SEARCH, (long)KEY_SPEC_USER_KEYRING, TYPE, name, 0L);
    free(name);
    return key;
}

static int failed(struct err *e, const char *what)
{
    switch (errno) {
    case ENOSYS:
    case EOPNOTSUPP:
        return err_set(e, ERR_UNSUPPORTED, "%s: this kernel has no keyrings", what);
    case EPERM: /* usually a container's seccomp filter */
    case EACCES:
        return err_set(e, ERR_DENIED, "%s: not allowed here", what);
    case EDQUOT:
        return err_set(
            e, ERR_NO_SPACE, "%s: the user's keyring is full (/proc/sys/kernel/keys)", what);
    case ENOKEY:
    case EKEYEXPIRED:
    case EKEYREVOKED:
        return err_set(e, ERR_NOT_FOUND, "%s: no entry", what);
    default:
        return err_errno(e, errno, "%s", what);
    }
}

int keyring_put(const char *dir, const struct wire_secrets *s, struct wall now, struct err *e)
{
    static const char what[] = "keep an attempt's secrets in the kernel's keyring";
    struct wire_desired_attempt one = {.job = 1, .attempt = 1, .secrets = *s};
    struct wire_desired whole = {.rev = 1, .lease_ms = 1, .attempts = &one, .n_attempts = 1};
    struct buf text = {0};
    char *name = name_of(dir);
    long key;
    one.secrets.of_job = NULL; /* too large, and only needed until the start */
    one.secrets.n_of_job = 0;
    /* a buffer that grows is moved, and would leave a copy of the secrets */
    buf_reserve(&text, (size_t)PAYLOAD_MAX);
    buf_printf(&text, "%" PRId64 "\n", now.ms);
    wire_desired_encode(&whole, &text);
    if (text.len > (size_t)PAYLOAD_MAX) {
        buf_wipe(&text);
        free(name);
        return err_set(e, ERR_INVALID, "%s: too large", what);
    }
    key = syscall(SYS_add_key, TYPE, name, text.data, text.len, (long)KEY_SPEC_USER_KEYRING);
    int rc = key < 0 ? failed(e, what) : 0;
    if (rc == 0 && (syscall(SYS_keyctl, KEYCTL_SETPERM, key, PERMISSIONS) < 0 ||
                       syscall(SYS_keyctl, KEYCTL_SET_TIMEOUT, key, (long)KEYRING_LIFE_S) < 0)) {
        rc = failed(e, what);
        syscall(SYS_keyctl, KEYCTL_UNLINK, key, (long)KEY_SPEC_USER_KEYRING);
    }
    buf_wipe(&text);
    free(name);
    return rc;
}

/* Subtracts the time since storing from the credentials' life. A clock set back does not extend
 * it. */
static int age(struct wire_secrets *s, int64_t put_ms, struct wall now, struct err *e)
{
    int64_t passed = now.ms > put_ms ? now.ms - put_ms : 0;
    if (!s->store_token)
        return 0;
    s->store_left_ms -= passed;
    return s->store_left_ms > 0 ? 0
                                : err_set(e, ERR_NOT_FOUND,
                                      "the store credentials in the kernel's keyring have expired");
}

static int decode(
    const struct buf *text, struct wall now, struct wire_secrets *ret_s, struct err *e)
{
    struct wire_desired whole;
    char *end = NULL;
    int64_t put_ms = strtoll(buf_str(text), &end, 10);
    size_t at = (size_t)(end - buf_str(text));
    if (at == 0 || *end != '\n')
        return err_set(e, ERR_INVALID, "what the kernel's keyring has is not an attempt's secrets");
    int rc = wire_desired_decode(end + 1, text->len - at - 1, &whole, e);
    if (rc != 0)
        return rc;
    if (whole.n_attempts != 1 || whole.attempts[0].secrets.version == 0)
        rc = err_set(e, ERR_INVALID, "what the kernel's keyring has is not an attempt's secrets");
    else
        rc = age(&whole.attempts[0].secrets, put_ms, now, e);
    if (rc == 0)
        wire_secrets_copy(&whole.attempts[0].secrets, ret_s);
    wire_desired_deinit(&whole);
    return rc;
}

int keyring_get(const char *dir, struct wall now, struct wire_secrets *ret_s, struct err *e)
{
    static const char what[] = "read an attempt's secrets from the kernel's keyring";
    struct buf text = {0};
    long key = find(dir), n = -1;
    if (key >= 0)
        n = syscall(
            SYS_keyctl, KEYCTL_READ, key, buf_reserve(&text, (size_t)PAYLOAD_MAX), PAYLOAD_MAX);
    int rc = n < 0 || n > PAYLOAD_MAX ? failed(e, what) : 0;
    if (rc == 0) {
        buf_commit(&text, (size_t)n);
        rc = decode(&text, now, ret_s, e);
    }
    buf_wipe(&text);
    return rc;
}

void keyring_renew(const char *dir)
{
    long key = find(dir);
    if (key >= 0)
        syscall(SYS_keyctl, KEYCTL_SET_TIMEOUT, key, (long)KEYRING_LIFE_S);
}

void keyring_drop(const char *dir)
{
    long key = find(dir);
    if (key >= 0)
        syscall(SYS_keyctl, KEYCTL_UNLINK, key, (long)KEY_SPEC_USER_KEYRING);
}
