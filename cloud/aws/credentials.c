/* SPDX-License-Identifier: Apache-2.0
 *
 * See credentials.h. A source has one cache and at most one fetch in progress, whose outcome goes
 * to all waiters.
 *
 *   get --> timer(0) --- cached and good --------------------------------> done
 *                 \--- environment, else file --- found, or malformed ---> done
 *                              \--- none: role name --> role's keys -----> done
 *
 * Role credentials are renewed from 15 minutes before they expire (new ones appear 5 minutes
 * before). A renewal that fails, or that returns the same credentials, is retried a minute later.
 * Until then the old ones are handed out, even after they have expired: when the metadata service
 * lags, the provider usually accepts them for longer.
 */
#include "cloud/aws/credentials.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cloud/aws/imds.h"
#include <assert.h>
#include <ctype.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

#define RENEW_BEFORE_MS SECONDS_MS(15 * 60)
#define RENEW_PAUSE_MS SECONDS_MS(60)
#define LINE_MAX_BYTES 16384
#define ROLE_NAME_MAX 64
#define ROLE_PATH "/latest/meta-data/iam/security-credentials/"

struct aws_credential_source {
    struct aws_credentials from_env; /* access_key "" = none */
    char *file;                      /* NULL if there is no home directory */
    char *profile;
    bool profile_named; /* named by the caller or the environment: then it must exist */
    bool file_named;
    struct imds *imds; /* NULL if disabled */
    struct timers *timers;
    struct timer answer_timer;
    struct list waits;
    bool fetching, answering;
    struct aws_credentials cached; /* access_key "" = none */
    bool refused;
    struct mono renew_after; /* set after a renewal that did not help */
};

static const char *environment(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

void aws_environment_read(struct aws_environment *ret_env)
{
    const char *disabled = environment("AWS_EC2_METADATA_DISABLED");
    *ret_env = (struct aws_environment){
        .access_key = environment("AWS_ACCESS_KEY_ID"),
        .secret_key = environment("AWS_SECRET_ACCESS_KEY"),
        .session_token = environment("AWS_SESSION_TOKEN"),
        .credentials_file = environment("AWS_SHARED_CREDENTIALS_FILE"),
        .profile = environment("AWS_PROFILE"),
        .home = environment("HOME"),
        .metadata_disabled = disabled && strcasecmp(disabled, "true") == 0,
    };
}

/* Copies a value that will be put in a header line: visible ASCII only. Errors never show it. */
static int copy_value(
    char *dst, size_t size, const char *src, size_t n, const char *what, struct err *e)
{
    if (n >= size)
        return err_set(e, ERR_CONFIG, "%s is longer than %zu bytes", what, size - 1);
    for (size_t i = 0; i < n; i++)
        if (src[i] <= ' ' || src[i] > '~')
            return err_set(e, ERR_CONFIG, "%s contains a blank or an invalid character", what);
    memcpy(dst, src, n);
    dst[n] = '\0';
    return 0;
}

#define COPY_VALUE(dst, src, what, e)                                                              \
    copy_value((dst), sizeof(dst), (src), strlen(src), (what), (e))

static int read_environment(
    struct aws_credential_source *s, const struct aws_environment *env, struct err *e)
{
    struct aws_credentials *c = &s->from_env;
    if (!env->access_key && !env->secret_key)
        return 0;
    if (!env->access_key || !env->secret_key)
        return err_set(e, ERR_CONFIG,
            "environment: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY go together; %s is not set",
            env->access_key ? "AWS_SECRET_ACCESS_KEY" : "AWS_ACCESS_KEY_ID");
    c->expires = WALL_NONE;
    int rc = COPY_VALUE(c->access_key, env->access_key, "AWS_ACCESS_KEY_ID", e);
    if (rc == 0)
        rc = COPY_VALUE(c->secret_key, env->secret_key, "AWS_SECRET_ACCESS_KEY", e);
    if (rc == 0 && env->session_token)
        rc = COPY_VALUE(c->session_token, env->session_token, "AWS_SESSION_TOKEN", e);
    return rc;
}

static void on_answer_timer(struct timer *t, void *ctx);

int aws_credential_source_create(const struct aws_credential_options *o,
    struct aws_credential_source **ret_source, struct err *e)
{
    struct aws_credential_source *s = mem_alloc(sizeof(*s));
    const char *file = o->credentials_file ? o->credentials_file : o->env.credentials_file;
    const char *profile = o->profile ? o->profile : o->env.profile;
    s->timers = o->timers;
    s->file_named = file != NULL;
    s->profile_named = profile != NULL;
    s->profile = mem_strdup(profile ? profile : "default");
    if (file)
        s->file = mem_strdup(file);
    else if (o->env.home)
        s->file = mem_printf("%s/.aws/credentials", o->env.home);
    s->renew_after = MONO_NONE;
    timer_init(&s->answer_timer, on_answer_timer, s);
    int rc = read_environment(s, &o->env, e);
    if (rc == 0 && !o->env.metadata_disabled)
        rc = imds_create(
            o->metadata_url ? o->metadata_url : IMDS_URL, o->http, o->timers->clock, &s->imds, e);
    if (rc == 0)
        *ret_source = s;
    else
        aws_credential_source_destroy(s);
    return rc;
}

void aws_credential_source_destroy(struct aws_credential_source *s)
{
    if (!s)
        return;
    assert(!s->answering);
    timer_stop(s->timers, &s->answer_timer);
    while (list_pop(&s->waits))
        ;
    imds_destroy(s->imds);
    free(s->file);
    free(s->profile);
    OPENSSL_cleanse(s, sizeof(*s));
    free(s);
}

/* Gives the outcome, the cached credentials or e, to all current waiters. */
static void answer(struct aws_credential_source *s, const struct err *e)
{
    struct list now = {0};
    struct link *link;
    s->fetching = false;
    while ((link = list_pop(&s->waits)))
        list_push_back(&now, link);
    s->answering = true;
    while ((link = list_pop(&now))) {
        struct aws_credentials_wait *w = LIST_ENTRY(link, struct aws_credentials_wait, link);
        w->done(w->ctx, e, e ? NULL : &s->cached);
    }
    s->answering = false;
}

static bool is_fresh(const struct aws_credential_source *s)
{
    const struct aws_credentials *c = &s->cached;
    return !wall_is_set(c->expires) ||
           c->expires.ms - clock_wall(s->timers->clock).ms > RENEW_BEFORE_MS;
}

static bool is_usable(const struct aws_credential_source *s)
{
    if (!s->cached.access_key[0] || s->refused)
        return false;
    return is_fresh(s) ||
           (mono_is_set(s->renew_after) && clock_mono(s->timers->clock).ms < s->renew_after.ms);
}

static void accept_credentials(struct aws_credential_source *s, struct aws_credentials *c)
{
    s->cached = *c;
    OPENSSL_cleanse(c, sizeof(*c));
    s->refused = false;
    s->renew_after.ms = clock_mono(s->timers->clock).ms + RENEW_PAUSE_MS;
    answer(s, NULL);
}

static void fail_role(struct aws_credential_source *s, const struct err *cause)
{
    struct err e = *cause;
    if (s->cached.access_key[0] && !s->refused) {
        s->renew_after.ms = clock_mono(s->timers->clock).ms + RENEW_PAUSE_MS;
        answer(s, NULL);
        return;
    }
    if (e.kind == ERR_NOT_FOUND)
        err_set(&e, ERR_CONFIG,
            "no AWS credentials: not in the environment, not in %s, and this instance has no role",
            s->file ? s->file : "a shared file");
    else
        err_wrap(&e,
            "AWS credentials: not in the environment, not in %s; asking for the instance's role",
            s->file ? s->file : "a shared file");
    answer(s, &e);
}

static void on_role_keys(void *ctx, const struct err *e, const char *body, size_t n)
{
    struct aws_credential_source *s = ctx;
    struct aws_credentials c;
    struct err bad;
    if (e)
        fail_role(s, e);
    else if (aws_credentials_parse_role(body, n, &c, &bad) != 0)
        fail_role(s, &bad);
    else
        accept_credentials(s, &c);
}

static void on_role_name(void *ctx, const struct err *e, const char *body, size_t n)
{
    struct aws_credential_source *s = ctx;
    char path[sizeof(ROLE_PATH) + ROLE_NAME_MAX];
    if (e) {
        fail_role(s, e);
        return;
    }
    size_t len = strcspn(body, "\r\n");
    if (len == 0 || len > ROLE_NAME_MAX ||
        strspn(body, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+=,.@_-") <
            len) {
        struct err bad;
        err_set(&bad, ERR_INVALID,
            "metadata " ROLE_PATH ": the reply of %zu bytes is not a role name", n);
        fail_role(s, &bad);
        return;
    }
    snprintf(path, sizeof(path), ROLE_PATH "%.*s", (int)len, body);
    imds_get(s->imds, path, on_role_keys, s);
}

/* Returns 0, ERR_NOT_FOUND (try the next source), or an error. */
static int read_file(struct aws_credential_source *s, struct aws_credentials *ret, struct err *e)
{
    struct buf text = {0};
    if (!s->file)
        return err_set(e, ERR_NOT_FOUND, "no home directory");
    int rc = fs_read_secret(s->file, AWS_CREDENTIALS_FILE_MAX, &text, e);
    if (rc == 0) {
        rc = aws_credentials_parse_file(buf_str(&text), text.len, s->profile, ret, e);
        if (rc != 0)
            rc = err_wrap(e, "%s", s->file);
        if (rc == ERR_NOT_FOUND && s->profile_named)
            rc = e->kind = ERR_CONFIG;
    } else if (rc != ERR_NOT_FOUND || s->file_named) {
        rc = e->kind = ERR_CONFIG;
    }
    buf_wipe(&text);
    return rc;
}

static void fetch(struct aws_credential_source *s)
{
    struct aws_credentials c = s->from_env;
    struct err e;
    if (c.access_key[0]) {
        accept_credentials(s, &c);
        return;
    }
    int rc = read_file(s, &c, &e);
    if (rc == 0) {
        accept_credentials(s, &c);
    } else if (rc != ERR_NOT_FOUND) {
        answer(s, &e);
    } else if (!s->imds) {
        err_set(&e, ERR_NOT_FOUND, "the metadata service is disabled");
        fail_role(s, &e);
    } else {
        s->fetching = true;
        imds_get(s->imds, ROLE_PATH, on_role_name, s);
    }
}

static void on_answer_timer(struct timer *t, void *ctx)
{
    struct aws_credential_source *s = ctx;
    (void)t;
    if (s->fetching)
        return;
    if (is_usable(s))
        answer(s, NULL);
    else
        fetch(s);
}

void aws_credentials_get(struct aws_credential_source *s, struct aws_credentials_wait *w,
    aws_credentials_fn done, void *ctx)
{
    *w = (struct aws_credentials_wait){.done = done, .ctx = ctx};
    list_push_back(&s->waits, &w->link);
    if (!s->fetching && !timer_is_running(&s->answer_timer))
        timer_start(s->timers, &s->answer_timer, 0);
}

void aws_credentials_cancel(struct aws_credentials_wait *w)
{
    link_remove(&w->link);
}

bool aws_credentials_refused(struct aws_credential_source *s)
{
    s->refused = true;
    return !s->from_env.access_key[0];
}

/* ---- the shared file ---- */

struct file_parser {
    const char *profile;
    size_t line;
    bool in_profile, found;
    char nearest[65]; /* the most similar profile seen */
    struct aws_credentials c;
    struct err *e;
};

static void trim(const char **p, size_t *n)
{
    while (*n > 0 && isspace((unsigned char)**p))
        (*p)++, (*n)--;
    while (*n > 0 && isspace((unsigned char)(*p)[*n - 1]))
        (*n)--;
}

static bool is_text(const char *p, size_t n, const char *text)
{
    return n == strlen(text) && memcmp(p, text, n) == 0;
}

static int parse_section(struct file_parser *f, const char *p, size_t n)
{
    if (p[n - 1] != ']')
        return err_set(
            f->e, ERR_CONFIG, "line %zu: expected ']' at the end of a profile's name", f->line);
    p++;
    n -= 2;
    trim(&p, &n);
    f->in_profile = is_text(p, n, f->profile);
    f->found = f->found || f->in_profile;
    if (n > 0 && n < sizeof(f->nearest)) {
        char name[sizeof(f->nearest)];
        memcpy(name, p, n);
        name[n] = '\0';
        const char *const names[] = {name, f->nearest[0] ? f->nearest : NULL, NULL};
        const char *nearest = str_nearest(f->profile, names);
        if (nearest == name)
            STR_COPY(f->nearest, name);
    }
    return 0;
}

static int parse_setting(struct file_parser *f, const char *p, size_t n)
{
    const char *equals = memchr(p, '=', n);
    if (!equals)
        return err_set(f->e, ERR_CONFIG,
            "line %zu: expected \"[profile]\", \"key = value\" or a comment", f->line);
    if (!f->in_profile)
        return 0;
    const char *key = p, *value = equals + 1;
    size_t key_len = (size_t)(equals - p), value_len = n - key_len - 1;
    int rc = 0;
    trim(&key, &key_len);
    trim(&value, &value_len);
    struct aws_credentials *c = &f->c;
    if (is_text(key, key_len, "aws_access_key_id"))
        rc = copy_value(
            c->access_key, sizeof(c->access_key), value, value_len, "aws_access_key_id", f->e);
    else if (is_text(key, key_len, "aws_secret_access_key"))
        rc = copy_value(
            c->secret_key, sizeof(c->secret_key), value, value_len, "aws_secret_access_key", f->e);
    else if (is_text(key, key_len, "aws_session_token"))
        rc = copy_value(c->session_token, sizeof(c->session_token), value, value_len,
            "aws_session_token", f->e);
    return rc == 0 ? 0 : err_wrap(f->e, "line %zu", f->line);
}

static int parse_line(struct file_parser *f, const char *p, size_t n)
{
    if (n > LINE_MAX_BYTES)
        return err_set(f->e, ERR_CONFIG, "line %zu: longer than %d bytes", f->line, LINE_MAX_BYTES);
    /* belongs to the previous setting, which is not one of ours */
    if (n > 0 && isspace((unsigned char)p[0]))
        return 0;
    trim(&p, &n);
    if (n == 0 || p[0] == '#' || p[0] == ';')
        return 0;
    return p[0] == '[' ? parse_section(f, p, n) : parse_setting(f, p, n);
}

static int check_profile(struct file_parser *f)
{
    if (!f->found && f->nearest[0])
        return err_set(
            f->e, ERR_NOT_FOUND, "no profile [%.64s]; the nearest is [%s]", f->profile, f->nearest);
    if (!f->found)
        return err_set(f->e, ERR_NOT_FOUND, "no profile [%.64s]", f->profile);
    if (!f->c.access_key[0] || !f->c.secret_key[0])
        return err_set(f->e, ERR_CONFIG,
            "profile [%.64s] needs aws_access_key_id and aws_secret_access_key (other kinds of "
            "profiles are not supported)",
            f->profile);
    return 0;
}

int aws_credentials_parse_file(const char *text, size_t n, const char *profile,
    struct aws_credentials *ret_credentials, struct err *e)
{
    struct file_parser f = {.profile = profile, .e = e, .c = {.expires = WALL_NONE}};
    int rc = 0;
    for (const char *p = text, *end = text + n; p < end && rc == 0;) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        size_t len = newline ? (size_t)(newline - p) : (size_t)(end - p);
        f.line++;
        rc = parse_line(&f, p, len);
        p += len + 1;
    }
    if (rc == 0)
        rc = check_profile(&f);
    if (rc == 0)
        *ret_credentials = f.c;
    OPENSSL_cleanse(&f.c, sizeof(f.c));
    return rc;
}

/* ---- the role's reply ---- */

static void copy_text(struct json_reader *r, const char *key, char *dst, size_t size)
{
    const char *value = json_req_str(r, key, size - 1);
    if (value && copy_value(dst, size, value, strlen(value), key, NULL) != 0)
        json_reader_fail(r, key, "malformed");
}

int aws_credentials_parse_role(
    const char *text, size_t n, struct aws_credentials *ret_credentials, struct err *e)
{
    struct aws_credentials c = {.expires = WALL_NONE};
    struct json_reader r;
    struct err unsaid; /* JSON's error text might quote a secret */
    json_t *object = NULL;
    int rc = json_parse(text, n, IMDS_REPLY_MAX, &object, &unsaid);
    if (rc == 0) {
        json_reader_init(&r, object, "", &unsaid);
        const char *code = json_opt_str(&r, "Code", 64, "Success");
        if (code && !str_eq(code, "Success")) {
            rc = err_set(e, ERR_UNAVAILABLE,
                "the instance's role has no credentials now: Code \"%s\"", code);
            json_decref(object);
            return rc;
        }
        copy_text(&r, "AccessKeyId", c.access_key, sizeof(c.access_key));
        copy_text(&r, "SecretAccessKey", c.secret_key, sizeof(c.secret_key));
        copy_text(&r, "Token", c.session_token, sizeof(c.session_token));
        const char *expires = json_req_str(&r, "Expiration", TIME_ISO_MAX);
        if (expires && time_parse_iso(expires, &c.expires, NULL) != 0)
            json_reader_fail(&r, "Expiration", "no time");
        rc = json_reader_finish_lenient(&r);
    }
    json_decref(object);
    if (rc != 0)
        rc = err_set(e, ERR_INVALID,
            "the reply of %zu bytes is not a JSON object with AccessKeyId, SecretAccessKey, Token "
            "and Expiration",
            n);
    else if (!c.access_key[0] || !c.secret_key[0])
        rc = err_set(e, ERR_INVALID, "the reply has an empty AccessKeyId or SecretAccessKey");
    else
        *ret_credentials = c;
    OPENSSL_cleanse(&c, sizeof(c));
    return rc;
}
