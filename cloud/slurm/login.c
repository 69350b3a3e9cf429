/* SPDX-License-Identifier: Apache-2.0
 *
 * See login.h. The token's signature is Slurm's to check; its claims are only read.
 */
#include "cloud/slurm/login.h"

#include "base/b64.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cloud/endpoint.h"
#include <string.h>

#define TOKEN_BYTES "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_."
#define TIME_MAX_S 253402300799 /* end of the year 9999 */
#define UNIX_PREFIX "unix:"

static int refuse(struct err *e, const char *what)
{
    return err_set(e, ERR_CONFIG,
        "%s; expected what `scontrol token` prints: one line SLURM_JWT=..., and SLURM_USER=NAME if "
        "the token does not name its user",
        what);
}

/* Copies a line's value. False: too long, empty, or with other characters. */
static bool take(char *out, size_t size, const char *value, size_t n, const char *allowed)
{
    if (n == 0 || n >= size || out[0])
        return false;
    memcpy(out, value, n);
    out[n] = '\0';
    return allowed ? strspn(out, allowed) == n : str_is_name(out, size - 1);
}

static int read_line(const char *line, size_t n, struct slurm_login *login, struct err *e)
{
    static const char jwt[] = "SLURM_JWT=", user[] = "SLURM_USER=";
    while (n > 0 && (line[n - 1] == '\r' || line[n - 1] == ' ' || line[n - 1] == '\t'))
        n--;
    if (n == 0 || line[0] == '#')
        return 0;
    if (n >= strlen(jwt) && memcmp(line, jwt, strlen(jwt)) == 0)
        return take(login->token, sizeof(login->token), line + strlen(jwt), n - strlen(jwt),
                   TOKEN_BYTES)
                   ? 0
                   : refuse(e, "SLURM_JWT is not one token");
    if (n >= strlen(user) && memcmp(line, user, strlen(user)) == 0)
        return take(login->user, sizeof(login->user), line + strlen(user), n - strlen(user), NULL)
                   ? 0
                   : refuse(e, "SLURM_USER is not one user's name");
    return refuse(e, "a line is neither SLURM_JWT nor SLURM_USER");
}

/* HEADER.CLAIMS.SIGNATURE; keeps a user that the file names. */
static int read_claims(struct slurm_login *login, struct err *e)
{
    const char *claims = strchr(login->token, '.');
    const char *end = claims ? strchr(claims + 1, '.') : NULL;
    struct buf text = {0};
    json_t *root = NULL;
    if (!end || strchr(end + 1, '.'))
        return refuse(e, "SLURM_JWT is not a JSON Web Token");
    if (b64_url_decode(&text, claims + 1, (size_t)(end - claims - 1), NULL) == 0 &&
        json_parse(buf_str(&text), text.len, SLURM_JWT_MAX, &root, NULL) == 0) {
        const char *user = json_string_value(json_object_get(root, "sun"));
        const int64_t expires_s = json_integer_value(json_object_get(root, "exp"));
        if (!login->user[0] && user && strlen(user) < sizeof(login->user) &&
            str_is_name(user, sizeof(login->user) - 1))
            STR_COPY(login->user, user);
        if (expires_s > 0 && expires_s <= TIME_MAX_S)
            login->expires_at.ms = SECONDS_MS(expires_s);
    }
    json_wipe(root);
    buf_wipe(&text);
    return login->user[0] ? 0 : refuse(e, "there is no user");
}

int slurm_parse_login(const char *text, size_t n, struct slurm_login *ret_login, struct err *e)
{
    struct slurm_login login = {.expires_at = WALL_NONE};
    int rc = memchr(text, '\0', n) ? refuse(e, "it is not a text") : 0;
    while (rc == 0 && n > 0) {
        const char *end = memchr(text, '\n', n);
        size_t len = end ? (size_t)(end - text) : n;
        rc = read_line(text, len, &login, e);
        text += len + (end ? 1 : 0);
        n -= len + (end ? 1 : 0);
    }
    if (rc == 0 && !login.token[0])
        rc = refuse(e, "there is no SLURM_JWT");
    if (rc == 0)
        rc = read_claims(&login, e);
    if (rc == 0)
        *ret_login = login;
    explicit_bzero(&login, sizeof(login));
    return rc;
}

int slurm_check_login(const struct slurm_login *login, struct wall now, struct err *e)
{
    char at[TIME_ISO_MAX];
    if (!wall_is_set(login->expires_at) || now.ms < login->expires_at.ms)
        return 0;
    time_format_iso(login->expires_at, at);
    return err_set(e, ERR_NO_CREDENTIALS,
        "the token of Slurm's user %s expired at %s; renew it: scontrol token username=%s "
        "lifespan=SECONDS",
        login->user, at, login->user);
}

int slurm_parse_endpoint(const char *text, struct slurm_endpoint *ret_endpoint, struct err *e)
{
    struct slurm_endpoint x = {0};
    if (!str_starts(text, UNIX_PREFIX)) {
        int rc = cloud_endpoint("Slurm", text, &x.url, e);
        if (rc == 0)
            *ret_endpoint = x;
        return rc;
    }
    const char *path = text + strlen(UNIX_PREFIX);
    if (path[0] != '/' || strlen(path) >= sizeof(x.unix_socket) || str_has_control(path))
        return err_set(e, ERR_CONFIG,
            "Slurm endpoint \"%.128s\": expected unix: and an absolute path of at most %zu bytes",
            text, sizeof(x.unix_socket) - 1);
    STR_COPY(x.unix_socket, path);
    x.url = mem_strdup("http://localhost");
    *ret_endpoint = x;
    return 0;
}
