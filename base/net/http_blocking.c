/* SPDX-License-Identifier: Apache-2.0
 *
 * See http_blocking.h. A lane serves one request at a time. It has curl's multi handle, which keeps
 * connections, DNS results and certificates, and one easy handle, which keeps TLS sessions. A
 * thread takes the most recently used lane, because its connection is the least likely to have been
 * closed meanwhile.
 */
#include "base/net/http_blocking.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/net/http_curl.h"
#include "base/time.h"
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define IDLE_LANES_MAX 64
#define LANE_CONNECTIONS_MAX 2L
#define LOOK_MS 100            /* interval for checking cancel and the deadline */
#define TRANSFER_BYTES 262144L /* of curl's buffers: fewer, larger reads and writes */

struct http_pool {
    /* CA file for requests that name none; NULL for curl's default */
    char *ca_file;
    pthread_mutex_t lock; /* protects idle and n_idle */
    struct list idle;     /* struct lane; the most recently used is first */
    size_t n_idle;
};

struct lane {
    struct link link;
    CURLM *multi;
    CURL *easy;
    int n_sent; /* how often curl began to send the current request */
};

/* The bundle runs on any Linux, so libcurl's compiled-in path may be wrong. */
static char *find_ca_file(void)
{
    const char *const files[] = {getenv("SSL_CERT_FILE"),
        curl_version_info(CURLVERSION_NOW)->cainfo,
        "/etc/ssl/certs/ca-certificates.crt", /* Debian, Arch */
        "/etc/pki/tls/certs/ca-bundle.crt",   /* Fedora, Red Hat, Amazon */
        "/etc/ssl/ca-bundle.pem",             /* SUSE */
        "/etc/ssl/cert.pem"};                 /* Alpine */
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        if (files[i] && files[i][0] && access(files[i], R_OK) == 0)
            return mem_strdup(files[i]);
    return NULL;
}

struct http_pool *http_pool_create(void)
{
    struct http_pool *p = mem_alloc(sizeof(*p));
    CURLcode rc = curl_global_init(CURL_GLOBAL_DEFAULT);
    assert(rc == CURLE_OK); /* fails only with a broken libcurl */
    (void)rc;
    p->ca_file = find_ca_file();
    pthread_mutex_init(&p->lock, NULL);
    return p;
}

static void lane_free(struct lane *l)
{
    curl_easy_cleanup(l->easy);
    curl_multi_cleanup(l->multi);
    free(l);
}

void http_pool_destroy(struct http_pool *p)
{
    if (!p)
        return;
    for (struct link *l; (l = list_pop(&p->idle));)
        lane_free(LIST_ENTRY(l, struct lane, link));
    pthread_mutex_destroy(&p->lock);
    curl_global_cleanup();
    free(p->ca_file);
    free(p);
}

static struct lane *take_lane(struct http_pool *p)
{
    pthread_mutex_lock(&p->lock);
    struct link *first = list_pop(&p->idle);
    if (first)
        p->n_idle--;
    pthread_mutex_unlock(&p->lock);
    if (first)
        return LIST_ENTRY(first, struct lane, link);
    struct lane *l = mem_alloc(sizeof(*l));
    l->multi = curl_multi_init();
    l->easy = curl_easy_init();
    assert(l->multi && l->easy); /* out of memory */
    curl_multi_setopt(l->multi, CURLMOPT_MAXCONNECTS, LANE_CONNECTIONS_MAX);
    return l;
}

static void give_lane(struct http_pool *p, struct lane *l)
{
    pthread_mutex_lock(&p->lock);
    bool is_kept = p->n_idle < IDLE_LANES_MAX;
    if (is_kept) {
        list_push_front(&p->idle, &l->link);
        p->n_idle++;
    }
    pthread_mutex_unlock(&p->lock);
    if (!is_kept)
        lane_free(l);
}

/* Called before anything is sent; called again if curl lost a kept connection and is about to send
 * the request once more. */
static int on_before_send(void *ctx, char *peer_ip, char *own_ip, int peer_port, int own_port)
{
    struct lane *l = ctx;
    (void)peer_ip, (void)own_ip, (void)peer_port, (void)own_port;
    return l->n_sent++ > 0 ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

static bool is_done(const struct lane *l, CURLcode *ret_code)
{
    int n_left;
    const CURLMsg *m = curl_multi_info_read(l->multi, &n_left);
    if (!m || m->msg != CURLMSG_DONE)
        return false;
    *ret_code = m->data.result;
    return true;
}

static int transfer(struct lane *l, struct http_curl *c, int64_t timeout_ms,
    const atomic_int *cancel, struct err *e)
{
    const int64_t deadline_ms = clock_mono(&clock_system).ms + timeout_ms;
    for (CURLcode code;;) {
        int n_running;
        curl_multi_perform(l->multi, &n_running);
        if (is_done(l, &code)) {
            int rc = http_curl_result(c, code, e);
            return l->n_sent > 1 ? err_set(e, ERR_IO,
                                       "%s: the connection was closed before the reply", c->label)
                                 : rc;
        }
        int64_t left_ms = deadline_ms - clock_mono(&clock_system).ms;
        if (left_ms <= 0)
            return err_set(e, ERR_TIMEOUT, "%s: no complete reply within %lld ms", c->label,
                (long long)timeout_ms);
        if (cancel && atomic_load(cancel) != 0)
            return err_set(e, ERR_CANCELLED, "%s: cancelled", c->label);
        curl_multi_poll(l->multi, NULL, 0, left_ms < LOOK_MS ? (int)left_ms : LOOK_MS, NULL);
    }
}

int http_blocking_run(struct http_pool *p, const struct http_request *r, const atomic_int *cancel,
    struct http_reply *ret_reply, struct err *e)
{
    struct lane *l = take_lane(p);
    struct http_curl c = {.easy = l->easy, .borrows_body = true};
    int rc = http_curl_init(&c, r, e);
    l->n_sent = 0;
    if (r->reply_memory) {
        c.reply.body = *r->reply_memory;
        *r->reply_memory = (struct buf){0};
        buf_clear(&c.reply.body);
    }
    if (rc == 0) {
        curl_easy_setopt(c.easy, CURLOPT_PREREQFUNCTION, on_before_send);
        curl_easy_setopt(c.easy, CURLOPT_PREREQDATA, l);
        curl_easy_setopt(c.easy, CURLOPT_BUFFERSIZE, TRANSFER_BYTES);
        curl_easy_setopt(c.easy, CURLOPT_UPLOAD_BUFFERSIZE, TRANSFER_BYTES);
        if (p->ca_file && !r->tls.ca_pem)
            curl_easy_setopt(c.easy, CURLOPT_CAINFO, p->ca_file);
        CURLMcode added = curl_multi_add_handle(l->multi, c.easy);
        assert(added == CURLM_OK);
        (void)added;
        rc = transfer(l, &c, r->timeout_ms, cancel, e);
        curl_multi_remove_handle(l->multi, c.easy);
    }
    *ret_reply = c.reply;
    c.reply = (struct http_reply){0};
    curl_easy_reset(c.easy); /* the handle points into c and r */
    c.easy = NULL;
    http_curl_deinit(&c);
    give_lane(p, l);
    return rc;
}
