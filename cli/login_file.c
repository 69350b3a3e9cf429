/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/login_file.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/time.h"
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_MAX (1u << 20)
#define TEXT_MAX 65536
#define TOKEN_MAX 256
#define EARLY_MS SECONDS_MS(300)

static char *directory(void)
{
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    if (config && config[0] == '/')
        return mem_printf("%s/belay", config);
    const struct passwd *pw = home && home[0] ? NULL : getpwuid(getuid());
    return mem_printf("%s/.config/belay", pw ? pw->pw_dir : home ? home : "");
}

static char *path_of(const char *name)
{
    char *dir = directory(), *path = mem_printf("%s/%s", dir, name);
    free(dir);
    return path;
}

static void wipe(char *text)
{
    if (text)
        explicit_bzero(text, strlen(text));
    free(text);
}

void login_deinit(struct login *l)
{
    free(l->server);
    wipe(l->token);
    wipe(l->refresh);
    free(l->ca_pem);
    free(l->user);
    *l = (struct login){0};
}

/* The content, an empty one if there is no file. */
static int read_all(json_t **ret, struct err *e)
{
    struct buf text = {0};
    char *path = path_of("logins.json");
    int rc = fs_read_secret(path, FILE_MAX, &text, e);
    if (rc == ERR_NOT_FOUND) {
        *ret = json_pack("{s:{}}", "servers");
        rc = 0;
    } else if (rc == 0 && (rc = json_parse(buf_str(&text), text.len, FILE_MAX, ret, e)) != 0) {
        err_wrap(e, "%s", path);
    } else if (rc == 0 && !json_is_object(json_object_get(*ret, "servers"))) {
        json_wipe(*ret);
        rc = err_set(e, ERR_INVALID, "%s: it is not a file of belay login: remove it", path);
    }
    buf_wipe(&text);
    free(path);
    return rc;
}

static int write_all(json_t *all, struct err *e)
{
    struct buf text = {0};
    char *path = path_of("logins.json");
    json_add_secret(&text, all);
    int rc = fs_write_atomic(path, text.data, text.len, 0600, e);
    buf_wipe(&text);
    free(path);
    return rc;
}

int login_file_find(const char *server, struct login *ret, struct err *e)
{
    json_t *all = NULL;
    struct json_reader r;
    *ret = (struct login){0};
    int rc = read_all(&all, e);
    if (rc != 0)
        return rc;
    if (!server)
        server = json_string_value(json_object_get(all, "last"));
    const json_t *v = server ? json_object_get(json_object_get(all, "servers"), server) : NULL;
    if (!v) {
        rc = err_set(e, ERR_NOT_FOUND, "nobody has signed in%s%s: belay login",
            server ? " at " : "", server ? server : "");
    } else {
        json_reader_init(&r, v, "logins.json", e);
        ret->token = mem_strdup(json_req_str(&r, "token", TOKEN_MAX));
        ret->refresh = mem_strdup(json_opt_str(&r, "refresh", TEXT_MAX, NULL));
        ret->ca_pem = mem_strdup(json_req_str(&r, "ca_pem", TEXT_MAX));
        ret->user = mem_strdup(json_req_str(&r, "user", TOKEN_MAX));
        ret->renew_at_ms = json_opt_i64(&r, "renew_at_ms", 0, INT64_MAX, 0);
        ret->server = mem_strdup(server);
        rc = json_reader_finish_lenient(&r);
    }
    json_wipe(all);
    return rc;
}

int login_file_put(const struct login *l, struct err *e)
{
    json_t *all = NULL;
    int rc = read_all(&all, e);
    if (rc != 0)
        return rc;
    json_t *v = json_pack("{s:s,s:s,s:s,s:I}", "token", l->token, "ca_pem", l->ca_pem, "user",
        l->user, "renew_at_ms", (json_int_t)l->renew_at_ms);
    if (l->refresh)
        json_object_set_new(v, "refresh", json_string(l->refresh));
    json_object_set_new(json_object_get(all, "servers"), l->server, v);
    json_object_set_new(all, "last", json_string(l->server));
    return write_all(all, e);
}

int login_file_remove(const char *server, struct err *e)
{
    json_t *all = NULL;
    int rc = read_all(&all, e);
    if (rc != 0)
        return rc;
    json_object_del(json_object_get(all, "servers"), server);
    if (str_eq(json_string_value(json_object_get(all, "last")), server))
        json_object_del(all, "last");
    return write_all(all, e);
}

int login_file_lock(int *ret_fd, struct err *e)
{
    char *dir = directory(), *path = path_of("logins.lock");
    int rc = fs_mkdirs(dir, 0700, e), fd = -1;
    if (rc == 0) {
        fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
            rc = err_errno(e, errno, "open %s", path);
    }
    if (rc == 0 && fs_lock(fd) != 0) {
        rc = errno == EWOULDBLOCK
                 ? err_set(e, ERR_UNAVAILABLE, "another belay has %s locked: try again", path)
                 : err_errno(e, errno, "lock %s", path);
        close(fd);
    }
    if (rc == 0)
        *ret_fd = fd;
    free(path);
    free(dir);
    return rc;
}

int login_read_reply(struct login *l, const json_t *reply, struct err *e)
{
    struct json_reader r;
    json_reader_init(&r, reply, "belayd's reply", e);
    char *token = mem_strdup(json_req_str(&r, "token", TOKEN_MAX));
    char *refresh = mem_strdup(json_opt_str(&r, "refresh", TEXT_MAX, NULL));
    char *user = mem_strdup(json_req_str(&r, "user", TOKEN_MAX));
    int64_t life_ms = json_req_i64(&r, "lifetime_ms", 1, INT64_MAX / 2);
    int rc = json_reader_finish_lenient(&r);
    if (rc != 0) {
        wipe(token);
        wipe(refresh);
        free(user);
        return rc;
    }
    wipe(l->token);
    wipe(l->refresh);
    free(l->user);
    l->token = token;
    l->refresh = refresh;
    l->user = user;
    int64_t early_ms = life_ms / 4 < EARLY_MS ? life_ms / 4 : EARLY_MS;
    l->renew_at_ms = clock_wall(&clock_system).ms + life_ms - early_ms;
    return 0;
}
