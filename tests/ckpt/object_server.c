/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/ckpt/object_server.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "tests/ckpt/tools.h"
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 8 /* objects per page of a list */
#define OBJECTS_MAX 256
#define HEAD_MAX 16384
#define BODY_MAX (64u << 20)

const char *const server_fault_names[] = {"fine", "slow-down", "error", "before", "kill-before",
    "after", "done-error", "cut-head", "cut-body", "cut-half", "cut-last", "short", "long",
    "garbage", "not-http", "kill-after", "denied-onward", "full-onward"};

/* ---- what is there ---- */

struct object {
    char *key;
    struct buf bytes;
};

struct objects { /* in byte order */
    struct object v[OBJECTS_MAX];
    size_t n;
};

static struct objects objects, taken; /* of the server's process */
static struct objects parts;          /* of uploads: "ID/PART" */
static struct server_orders *orders;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* incremented by every command: requests sent before it are not executed after it */
static unsigned era;

/* The index of key, or where it would be inserted. */
static size_t place(const struct objects *o, const char *key)
{
    size_t i = 0;
    while (i < o->n && strcmp(o->v[i].key, key) < 0)
        i++;
    return i;
}

static struct object *find(struct objects *o, const char *key)
{
    size_t i = place(o, key);
    return i < o->n && str_eq(o->v[i].key, key) ? &o->v[i] : NULL;
}

static void put(struct objects *o, const char *key, const struct buf *bytes)
{
    size_t i = place(o, key);
    struct buf copy = {0};
    buf_add(&copy, buf_str(bytes), bytes->len);
    if (i < o->n && str_eq(o->v[i].key, key)) {
        buf_deinit(&o->v[i].bytes);
    } else {
        if (o->n == OBJECTS_MAX)
            abort();
        memmove(&o->v[i + 1], &o->v[i], (o->n - i) * sizeof(o->v[0]));
        o->v[i].key = mem_strdup(key);
        o->n++;
    }
    o->v[i].bytes = copy;
}

static bool drop(struct objects *o, const char *key)
{
    size_t i = place(o, key);
    if (i == o->n || !str_eq(o->v[i].key, key))
        return false;
    free(o->v[i].key);
    buf_deinit(&o->v[i].bytes);
    memmove(&o->v[i], &o->v[i + 1], (--o->n - i) * sizeof(o->v[0]));
    return true;
}

static void copy_all(struct objects *to, const struct objects *from)
{
    while (to->n > 0)
        drop(to, to->v[0].key);
    for (size_t i = 0; from && i < from->n; i++)
        put(to, from->v[i].key, &from->v[i].bytes);
}

/* ---- a request and its answer ---- */

struct exchange {
    char method[16], target[4096];
    const char *path, *query; /* parts of the request */
    char head[HEAD_MAX];
    struct buf body;
    bool is_azure;
    /* the answer */
    int status;
    struct buf extra; /* additional header lines */
    struct buf answer;
    int64_t length; /* of the body that HEAD omits; -1 = of the answer */
};

/* The value of a header, or NULL; borrowed until the next call. */
static const char *header(const struct exchange *x, const char *name)
{
    static _Thread_local char value[1024];
    size_t n = strlen(name);
    for (const char *line = strstr(x->head, "\r\n"); line; line = strstr(line, "\r\n")) {
        line += 2;
        if (strncasecmp(line, name, n) == 0 && line[n] == ':') {
            line += n + 1 + strspn(line + n + 1, " ");
            snprintf(value, sizeof(value), "%.*s", (int)strcspn(line, "\r"), line);
            return value;
        }
    }
    return NULL;
}

/* A decoded parameter of the query, or NULL; the caller frees it. */
static char *asked(const struct exchange *x, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = x->query; *p; p += strcspn(p, "&"), p += *p == '&') {
        struct buf out = {0};
        if (strncmp(p, name, n) != 0 || p[n] != '=')
            continue;
        if (str_url_decode(&out, p + n + 1, strcspn(p + n + 1, "&"), false, NULL) != 0)
            abort();
        char *text = mem_strdup(buf_str(&out));
        buf_deinit(&out);
        return text;
    }
    return NULL;
}

static void refuse(struct exchange *x, int status, const char *code)
{
    x->status = status;
    x->length = -1;
    buf_clear(&x->extra);
    buf_clear(&x->answer);
    if (x->is_azure)
        buf_printf(&x->extra, "x-ms-error-code: %s\r\n", code);
    if (!str_eq(x->method, "HEAD"))
        buf_printf(&x->answer, "<Error><Code>%s</Code><Message>no</Message></Error>", code);
}

static void missing(struct exchange *x)
{
    refuse(x, 404, x->is_azure ? "BlobNotFound" : "NoSuchKey");
}

static void etag_of(const struct buf *b, char out[40])
{
    uint64_t h = 1469598103934665603u;
    for (size_t i = 0; i < b->len; i++)
        h = (h ^ (unsigned char)b->data[i]) * 1099511628211u;
    snprintf(out, 40, "\"%016llx\"", (unsigned long long)h);
}

static void get(struct exchange *x, const char *key)
{
    const struct object *o = find(&objects, key);
    char etag[40];
    size_t from = 0, to;
    const char *text;
    if (!o) {
        missing(x);
        return;
    }
    etag_of(&o->bytes, etag);
    if ((text = header(x, "If-Match")) && !str_eq(text, etag)) {
        refuse(x, 412, x->is_azure ? "ConditionNotMet" : "PreconditionFailed");
        return;
    }
    to = o->bytes.len;
    if ((text = header(x, "Range"))) {
        if (sscanf(text, "bytes=%zu-%zu", &from, &to) == 2)
            to++;
        to = to < o->bytes.len ? to : o->bytes.len;
        if (from > to)
            from = to;
    }
    x->status = text ? 206 : 200;
    buf_printf(&x->extra, "ETag: %s\r\n", etag);
    if (str_eq(x->method, "HEAD"))
        x->length = (int64_t)o->bytes.len;
    else
        buf_add(&x->answer, buf_str(&o->bytes) + from, to - from);
}

static bool is_there_already(struct exchange *x, const char *key)
{
    const char *match = header(x, x->is_azure || !header(x, "x-goog-if-generation-match")
                                      ? "If-None-Match"
                                      : "x-goog-if-generation-match");
    if (match && atomic_load(&orders->unconditional)) {
        refuse(x, 501, "NotImplemented");
        return true;
    }
    if (!match || !find(&objects, key))
        return false;
    refuse(x, x->is_azure ? 409 : 412, x->is_azure ? "BlobAlreadyExists" : "PreconditionFailed");
    return true;
}

/* Concatenates the parts that the body lists between open and close. False if one is missing. */
static bool assemble(
    const struct exchange *x, const char *id, const char *open, const char *close, struct buf *out)
{
    const char *p = buf_str(&x->body);
    while ((p = strstr(p, open))) {
        p += strlen(open);
        char *name = mem_printf("%s/%.*s", id, (int)(strstr(p, close) - p), p);
        const struct object *part = find(&parts, name);
        free(name);
        if (!part)
            return false;
        buf_add(out, buf_str(&part->bytes), part->bytes.len);
    }
    return true;
}

/* Drops the parts of an upload. */
static void drop_parts(const char *id)
{
    for (size_t i = parts.n; i-- > 0;)
        if (str_starts(parts.v[i].key, id) && parts.v[i].key[strlen(id)] == '/')
            drop(&parts, parts.v[i].key);
}

static void finish(struct exchange *x, const char *key, const char *id, const char *open,
    const char *close, const char *answer)
{
    struct buf whole = {0};
    if (is_there_already(x, key))
        return;
    if (!assemble(x, id, open, close, &whole)) {
        refuse(x, x->is_azure ? 400 : 404, x->is_azure ? "InvalidBlockList" : "NoSuchUpload");
    } else {
        put(&objects, key, &whole);
        drop_parts(id);
        x->status = x->is_azure ? 201 : 200;
        buf_adds(&x->answer, answer);
    }
    buf_deinit(&whole);
}

static void put_object(struct exchange *x, const char *key)
{
    char *comp = asked(x, "comp"), *id = asked(x, "uploadId"), *number = asked(x, "partNumber"),
         *block = asked(x, "blockid"), *part = NULL;
    const char *source = header(x, "x-amz-copy-source");
    if (comp && str_eq(comp, "blocklist")) {
        finish(x, key, key, "<Latest>", "</Latest>", "");
    } else if (block || id) {
        part = block ? mem_printf("%s/%s", key, block) : mem_printf("%s/%s", id, number);
        put(&parts, part, &x->body);
        x->status = block ? 201 : 200;
        buf_adds(&x->extra, "ETag: \"part\"\r\n");
    } else if (!is_there_already(x, key)) {
        source = source ? source : header(x, "x-goog-copy-source");
        const struct object *from =
            source ? find(&objects, source + (*source == '/') + strlen("jobs/")) : NULL;
        if (source && !from) {
            missing(x);
        } else {
            put(&objects, key, from ? &from->bytes : &x->body);
            x->status = x->is_azure ? 201 : 200;
            buf_adds(&x->answer,
                source ? "<CopyObjectResult><ETag>\"x\"</ETag></CopyObjectResult>" : "");
        }
    }
    free(comp);
    free(id);
    free(number);
    free(block);
    free(part);
}

static void remove_many(struct exchange *x)
{
    const char *p = buf_str(&x->body);
    while ((p = strstr(p, "<Key>"))) {
        p += 5;
        char *key = mem_strndup(p, (size_t)(strstr(p, "</Key>") - p));
        drop(&objects, key);
        free(key);
    }
    x->status = 200;
    buf_adds(&x->answer, "<DeleteResult></DeleteResult>");
}

static void post(struct exchange *x, const char *key)
{
    static int n_uploads;
    char *id = asked(x, "uploadId");
    if (!*key) {
        remove_many(x);
    } else if (id) {
        finish(x, key, id, "<PartNumber>", "</PartNumber>",
            "<CompleteMultipartUploadResult></CompleteMultipartUploadResult>");
    } else {
        x->status = 200;
        buf_printf(&x->answer,
            "<InitiateMultipartUploadResult><UploadId>u%d</UploadId></"
            "InitiateMultipartUploadResult>",
            n_uploads++);
    }
    free(id);
}

static void list(struct exchange *x)
{
    char *prefix = asked(x, "prefix"),
         *after = asked(x, x->is_azure ? "marker" : "continuation-token");
    const char *last = "";
    size_t n = 0, i;
    struct buf items = {0};
    for (i = 0; i < objects.n && n < PAGE; i++) {
        const struct object *o = &objects.v[i];
        if (!str_starts(o->key, prefix) || (after && strcmp(o->key, after) <= 0))
            continue;
        n++;
        last = o->key;
        if (x->is_azure)
            buf_printf(&items,
                "<Blob><Name>%s</Name><Properties><Content-Length>%zu</Content-Length></"
                "Properties></Blob>",
                o->key, o->bytes.len);
        else
            buf_printf(
                &items, "<Contents><Key>%s</Key><Size>%zu</Size></Contents>", o->key, o->bytes.len);
    }
    bool more = i < objects.n;
    x->status = 200;
    if (x->is_azure)
        buf_printf(&x->answer,
            "<EnumerationResults><Blobs>%s</Blobs><NextMarker>%s</NextMarker></EnumerationResults>",
            buf_str(&items), more ? last : "");
    else
        buf_printf(&x->answer,
            "<ListBucketResult><IsTruncated>%s</IsTruncated><NextContinuationToken>%s</"
            "NextContinuationToken>%s</ListBucketResult>",
            more ? "true" : "false", more ? last : "", buf_str(&items));
    buf_deinit(&items);
    free(prefix);
    free(after);
}

/* Does not affect an existing object of that name. */
static void abort_upload(struct exchange *x)
{
    char *id = asked(x, "uploadId");
    drop_parts(id);
    x->status = 204;
    free(id);
}

static void act(struct exchange *x)
{
    const char *root = x->is_azure ? "/lab1/jobs" : "/jobs";
    const char *key = x->path + strlen(root) + (x->path[strlen(root)] == '/');
    x->status = 400;
    if (!str_starts(x->path, root))
        refuse(x, 404, "NoSuchBucket");
    else if (str_eq(x->method, "POST"))
        post(x, key);
    else if (!*key)
        list(x);
    else if (str_eq(x->method, "PUT"))
        put_object(x, key);
    else if (!str_eq(x->method, "DELETE"))
        get(x, key);
    else if (str_starts(x->query, "uploadId="))
        abort_upload(x);
    else if (drop(&objects, key) || !x->is_azure)
        x->status = x->is_azure ? 202 : 204;
    else
        missing(x);
}

static void obey(struct exchange *x)
{
    era++;
    x->status = 200;
    copy_all(&parts, NULL);
    if (str_eq(x->path, "/take"))
        copy_all(&taken, &objects);
    else if (str_eq(x->path, "/back"))
        copy_all(&objects, &taken);
    else
        copy_all(&objects, NULL);
}

/* ---- the wire ---- */

static bool send_bytes(int fd, const char *p, size_t n)
{
    while (n > 0) {
        ssize_t sent = send(fd, p, n, MSG_NOSIGNAL);
        if (sent <= 0)
            return false;
        p += sent;
        n -= (size_t)sent;
    }
    return true;
}

/* Kills the client; the rest of the answer does not matter. */
static void kill_victim(void)
{
    kill(atomic_load(&orders->victim), SIGKILL);
}

static bool answer(int fd, struct exchange *x, enum server_fault fault)
{
    struct buf out = {0};
    size_t body = str_eq(x->method, "HEAD") ? 0 : x->answer.len;
    if (fault == SERVER_SHORT && body)
        body = x->answer.len /= 2;
    if (fault == SERVER_LONG && body)
        buf_adds(&x->answer, " and more"), body = x->answer.len;
    if (fault == SERVER_GARBAGE)
        memset(x->answer.data ? x->answer.data : (char[1]){0}, 'x', x->answer.len);
    buf_printf(&out, "HTTP/1.1 %d Whatever\r\n%s", x->status, buf_str(&x->extra));
    if (x->status != 204)
        buf_printf(&out, "Content-Length: %lld\r\n",
            x->length >= 0 ? (long long)x->length : (long long)body);
    buf_adds(&out, "\r\n");
    size_t head = out.len, n;
    buf_add(&out, buf_str(&x->answer), body);
    n = out.len;
    if (fault == SERVER_CUT_HEAD || (fault >= SERVER_CUT_BODY && fault <= SERVER_CUT_LAST && !body))
        n = head / 2;
    else if (fault == SERVER_CUT_BODY)
        n = head;
    else if (fault == SERVER_CUT_HALF)
        n = head + body / 2;
    else if (fault == SERVER_CUT_LAST)
        n--;
    bool ok = send_bytes(fd, out.data, n) && n == out.len;
    buf_deinit(&out);
    return ok;
}

static bool refuses(struct exchange *x, enum server_fault fault)
{
    if (fault == SERVER_SLOW_DOWN)
        refuse(x, 503, "SlowDown");
    else if (fault == SERVER_ERROR)
        refuse(x, 500, "InternalError");
    else if (fault == SERVER_DENIED_ONWARD)
        refuse(x, 403, "AccessDenied");
    else if (fault == SERVER_FULL_ONWARD && str_eq(x->method, "PUT"))
        refuse(x, 507, "InsufficientStorage");
    else
        return false;
    return true;
}

/* Requests that differ only in a number or a hash are of one sort. */
static void note_sort(const struct exchange *x, int n)
{
    char *prefix = asked(x, "prefix"), *comp = asked(x, "comp");
    bool in_parts = strstr(x->query, "upload") || strstr(x->query, "partNumber");
    const char *below = strstr(prefix ? prefix : x->path, "jobs/7/");
    if (n <= SERVER_SORTS_MAX)
        snprintf(orders->sorts[n - 1], sizeof(orders->sorts[0]), "%s %.*s%s%.8s%s", x->method,
            below ? (int)strcspn(below + 7, "/") : 0, below ? below + 7 : "", comp ? comp : "",
            in_parts ? x->query : "",
            header(x, "x-amz-copy-source") || header(x, "x-goog-copy-source") ? " copy" : "");
    free(prefix);
    free(comp);
}

static bool act_in(struct exchange *x, unsigned its_era)
{
    bool is_now;
    pthread_mutex_lock(&lock);
    is_now = its_era == era;
    if (is_now)
        act(x);
    pthread_mutex_unlock(&lock);
    return is_now;
}

/* False to close the connection. */
static bool serve(int fd, struct exchange *x, unsigned its_era)
{
    int n = atomic_fetch_add(&orders->n, 1) + 1, at = atomic_load(&orders->at);
    enum server_fault fault = (enum server_fault)atomic_load(&orders->fault);
    note_sort(x, n);
    if (fault >= SERVER_DENIED_ONWARD ? n < at : n != at)
        fault = SERVER_FINE;
    atomic_fetch_add(&orders->n_struck, fault != SERVER_FINE);
    if (fault == SERVER_KILL_BEFORE)
        kill_victim();
    if (fault == SERVER_BEFORE || fault == SERVER_KILL_BEFORE)
        return false;
    if (!refuses(x, fault) && !act_in(x, its_era))
        return false;
    if (fault == SERVER_KILL_AFTER)
        kill_victim();
    if (fault == SERVER_AFTER || fault == SERVER_KILL_AFTER)
        return false;
    if (fault == SERVER_NOT_HTTP)
        return send_bytes(fd, "this is not HTTP\r\n\r\n", 20) && false;
    if (fault == SERVER_DONE_ERROR)
        refuse(x, 500, "InternalError");
    return answer(fd, x, fault);
}

static bool read_request(int fd, struct exchange *x)
{
    size_t n = 0;
    char *end;
    for (;;) {
        ssize_t got = n < HEAD_MAX - 1 ? recv(fd, x->head + n, HEAD_MAX - 1 - n, 0) : -1;
        if (got <= 0)
            return false;
        n += (size_t)got;
        x->head[n] = '\0';
        if ((end = strstr(x->head, "\r\n\r\n")))
            break;
    }
    if (sscanf(x->head, "%15s %4095s", x->method, x->target) != 2)
        return false;
    char *query = strchr(x->target, '?');
    if (query)
        *query++ = '\0';
    x->path = x->target;
    x->query = query ? query : "";
    x->is_azure = str_starts(x->path, "/lab1/");
    x->length = -1;
    const char *length = header(x, "Content-Length");
    size_t want = length ? (size_t)atoll(length) : 0, early = n - (size_t)(end + 4 - x->head);
    buf_add(&x->body, end + 4, early);
    *end = '\0';
    while (x->body.len < want && want <= BODY_MAX) {
        char piece[65536];
        size_t left = want - x->body.len;
        ssize_t got = recv(fd, piece, left < sizeof(piece) ? left : sizeof(piece), 0);
        if (got <= 0)
            return false;
        buf_add(&x->body, piece, (size_t)got);
    }
    return x->body.len == want;
}

struct connection {
    int fd;
    unsigned era;
};

static void *on_connection(void *ctx)
{
    struct connection c = *(struct connection *)ctx;
    bool goes_on = true;
    free(ctx);
    while (goes_on) {
        struct exchange *x = mem_alloc(sizeof(*x));
        goes_on = read_request(c.fd, x);
        if (goes_on && (str_starts(x->path, "/jobs") || str_starts(x->path, "/lab1/"))) {
            goes_on = serve(c.fd, x, c.era);
        } else if (goes_on) {
            pthread_mutex_lock(&lock);
            obey(x);
            pthread_mutex_unlock(&lock);
            goes_on = answer(c.fd, x, SERVER_FINE);
        }
        buf_deinit(&x->body);
        buf_deinit(&x->extra);
        buf_deinit(&x->answer);
        free(x);
    }
    close(c.fd);
    return NULL;
}

static _Noreturn void run(int listener)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        struct connection *c = mem_alloc(sizeof(*c));
        pthread_t thread;
        c->fd = accept(listener, NULL, NULL);
        pthread_mutex_lock(&lock);
        c->era = era;
        pthread_mutex_unlock(&lock);
        if (c->fd < 0 || pthread_create(&thread, NULL, on_connection, c) != 0)
            abort();
        pthread_detach(thread);
    }
}

/* ---- the test's side ---- */

static int connect_to(int port)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
        .sin_port = htons((uint16_t)port),
        .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    return fd;
}

static void command(struct object_server *s, const char *what)
{
    char text[200];
    int fd = connect_to(s->port),
        n = snprintf(text, sizeof(text), "POST /%s HTTP/1.1\r\n\r\n", what);
    assert_true(send_bytes(fd, text, (size_t)n));
    assert_true(recv(fd, text, sizeof(text), 0) > 0); /* the command is executed */
    close(fd);
}

void object_server_start(struct object_server *s)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof(a);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(listener >= 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&a, sizeof(a)), 0);
    assert_int_equal(listen(listener, 64), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&a, &len), 0);
    s->port = ntohs(a.sin_port);
    s->orders =
        mmap(NULL, sizeof(*s->orders), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(s->orders != MAP_FAILED);
    fflush(NULL);
    s->pid = fork();
    assert_true(s->pid >= 0);
    if (s->pid == 0) {
        orders = s->orders;
        run(listener);
    }
    close(listener);
}

void object_server_stop(struct object_server *s)
{
    kill(s->pid, SIGKILL);
    assert_int_equal(waitpid(s->pid, NULL, 0), s->pid);
    munmap(s->orders, sizeof(*s->orders));
}

void object_server_order(struct object_server *s, enum server_fault fault, int at)
{
    atomic_store(&s->orders->fault, SERVER_FINE);
    atomic_store(&s->orders->n, 0);
    atomic_store(&s->orders->n_struck, 0);
    atomic_store(&s->orders->at, at);
    atomic_store(&s->orders->fault, (int)fault);
}

void object_server_take(struct object_server *s)
{
    command(s, "take");
}

void object_server_put_back(struct object_server *s)
{
    command(s, "back");
}

void object_server_clear(struct object_server *s)
{
    command(s, "clear");
}
