/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "tests/uv/certs.h"
#include "tests/uv/rig.h"
#include <arpa/inet.h>
#include <openssl/ssl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

struct world {
    struct rig rig;
    struct cert ca, other_ca, server;
};

/* ca NULL for one of its own. */
static void setup(struct world *w, const struct cert *ca)
{
    *w = (struct world){0};
    w->ca = ca ? cert_copy(ca) : cert_make(&(struct cert_options){.cn = "belay CA", .is_ca = true});
    w->other_ca = cert_make(&(struct cert_options){.cn = "belay CA", .is_ca = true});
    w->server = cert_make(&(struct cert_options){
        .cn = "belayd", .san = "DNS:belayd,IP:127.0.0.1", .usage = "serverAuth", .issuer = &w->ca});
    rig_init(&w->rig);
    rig_serve(&w->rig, (struct http_server_options){.cert_pem = w->server.cert_pem,
                           .key_pem = w->server.key_pem,
                           .client_ca_pem = w->ca.cert_pem});
}

static void teardown(struct world *w)
{
    rig_deinit(&w->rig);
    cert_deinit(&w->server);
    cert_deinit(&w->other_ca);
    cert_deinit(&w->ca);
}

static struct http_request trusting(const struct world *w)
{
    return (struct http_request){.tls = {.ca_pem = w->ca.cert_pem}};
}

/* The server's answer for a client with this certificate (may be NULL). */
static void whoami(struct world *w, const struct cert *client, struct outcome *o)
{
    struct http_request q = trusting(w);
    if (client) {
        q.tls.cert_pem = client->cert_pem;
        q.tls.key_pem = client->key_pem;
    }
    rig_fetch(&w->rig, "GET", "/whoami", q, o);
    if (o->kind != ERR_NONE)
        fail_msg("%s", o->text);
    assert_int_equal(o->status, 200);
}

static void expect_cn(struct world *w, const struct cert *client, const char *start)
{
    struct outcome o;
    whoami(w, client, &o);
    if (!str_starts(buf_str(&o.body), start))
        fail_msg("expected %s, got %s", start, buf_str(&o.body));
    outcome_deinit(&o);
}

/* No CN, and an error that contains this word. */
static void expect_refused(struct world *w, struct cert_options options, const char *word)
{
    struct outcome o;
    struct cert client = cert_make(&options);
    whoami(w, &client, &o);
    const char *text = buf_str(&o.body);
    if (!str_starts(text, "cn=-;error=") || str_starts(text, "cn=-;error=-") || !strstr(text, word))
        fail_msg("expected a refusal with \"%s\", got %s", word, text);
    outcome_deinit(&o);
    cert_deinit(&client);
}

/* What a client sends first. */
static void make_hello(struct buf *hello)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    SSL *ssl = SSL_new(ctx);
    BIO *out = BIO_new(BIO_s_mem());
    char *p;
    SSL_set_bio(ssl, BIO_new(BIO_s_mem()), out);
    assert_true(SSL_connect(ssl) < 0);
    long n = BIO_get_mem_data(out, &p);
    buf_add(hello, p, (size_t)n);
    SSL_free(ssl);
    SSL_CTX_free(ctx);
}

static int connect_to(struct world *w)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
        .sin_port = htons((uint16_t)http_server_port(w->rig.server)),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    return fd;
}

static int n_trims;

void __real_mem_trim(void);
void __wrap_mem_trim(void);
void __wrap_mem_trim(void)
{
    n_trims++;
    __real_mem_trim();
}

/* Upper bound from http_conn.c and http_server.c if a handshake takes a millisecond: 8 ms of events
 * as they come, and 10 ms of turns, in which UV_RUN_ONCE may call timers twice. */
#define SHAKES_AN_ITERATION_MAX (8 + 2 * 10)

static bool is_burst;
static int n_shakes; /* of the burst */

/* Each handshake ends in a later millisecond, so that their number per iteration depends on the
 * server and not on the processor. */

int __real_SSL_do_handshake(SSL *ssl);
int __wrap_SSL_do_handshake(SSL *ssl);
int __wrap_SSL_do_handshake(SSL *ssl)
{
    int64_t began_ms = clock_mono(&clock_system).ms;
    int rc = __real_SSL_do_handshake(ssl);
    n_shakes += is_burst;
    while (is_burst && clock_mono(&clock_system).ms == began_ms) {
    }
    return rc;
}

struct iterations {
    uv_check_t check;
    int n_before; /* handshakes before the last iteration */
    int most;     /* handshakes in the iteration with most */
};

static void on_iteration(uv_check_t *h)
{
    struct iterations *t = h->data;
    const int n = n_shakes - t->n_before;
    t->n_before = n_shakes;
    if (n > t->most)
        t->most = n;
}

/* A handshake costs the server more than any other operation, and anyone may begin many at once. */
static void a_burst_of_handshakes_does_not_delay_an_open_connection(void **state)
{
    (void)state;
    enum { BURST = 300 };
    struct world w;
    struct outcome o;
    struct buf hello = {0};
    struct http_server_stats stats = {0};
    struct iterations iterations = {0};
    int fds[BURST], n_shaken = 0;
    char c;
    setup(&w, NULL);
    iterations.check.data = &iterations;
    uv_check_init(&w.rig.loop, &iterations.check);
    uv_check_start(&iterations.check, on_iteration);
    make_hello(&hello);
    rig_fetch(&w.rig, "GET", "/hello", trusting(&w), &o); /* opens the connection */
    outcome_deinit(&o);
    for (int i = 0; i < BURST; i++)
        fds[i] = connect_to(&w);
    while (stats.accepted < BURST + 1) {
        uv_run(&w.rig.loop, UV_RUN_ONCE);
        http_server_get_stats(w.rig.server, &stats);
    }
    for (int i = 0; i < BURST; i++)
        assert_int_equal(write(fds[i], hello.data, hello.len), hello.len);
    is_burst = true;
    rig_fetch(&w.rig, "GET", "/hello", trusting(&w), &o);
    assert_int_equal(o.status, 200);
    for (int i = 0; i < BURST; i++)
        n_shaken += recv(fds[i], &c, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
    assert_in_range(n_shaken, 0, BURST * 2 / 3);
    for (int i = 0; i < BURST; i++) { /* each of them gets its turn */
        while (recv(fds[i], &c, 1, MSG_PEEK | MSG_DONTWAIT) != 1)
            uv_run(&w.rig.loop, UV_RUN_ONCE);
        close(fds[i]);
    }
    is_burst = false;
    assert_true(n_shakes >= BURST);
    assert_in_range(iterations.most, 1, SHAKES_AN_ITERATION_MAX);
    uv_close((uv_handle_t *)&iterations.check, NULL);
    http_server_get_stats(w.rig.server, &stats);
    assert_int_equal(stats.accepted, BURST + 1); /* the second request came over the first's */
    rig_run_until_count(&w.rig, &n_trims, 1);    /* the memory of the closed ones is returned */
    outcome_deinit(&o);
    buf_deinit(&hello);
    teardown(&w);
}

static void a_client_without_a_certificate_has_no_name(void **state)
{
    (void)state;
    struct world w;
    setup(&w, NULL);
    expect_cn(&w, NULL, "cn=-;error=-;unix=0;");
    teardown(&w);
}

static void a_verified_certificate_gives_its_name(void **state)
{
    (void)state;
    struct world w;
    setup(&w, NULL);
    struct cert a =
        cert_make(&(struct cert_options){.cn = "node-1", .usage = "clientAuth", .issuer = &w.ca});
    struct cert b = cert_make(&(struct cert_options){.cn = "node-2", .issuer = &w.ca});
    expect_cn(&w, &a, "cn=node-1;error=-;");
    expect_cn(&w, &b, "cn=node-2;error=-;"); /* two identities do not share a connection */
    expect_cn(&w, NULL, "cn=-;error=-;");
    expect_cn(&w, &a, "cn=node-1;error=-;");
    cert_deinit(&a);
    cert_deinit(&b);
    teardown(&w);
}

static void certificates_that_do_not_verify_give_no_name(void **state)
{
    (void)state;
    struct world w;
    setup(&w, NULL);
    expect_refused(
        &w, (struct cert_options){.cn = "node-1", .is_expired = true, .issuer = &w.ca}, "expired");
    expect_refused(&w, (struct cert_options){.cn = "node-1", .issuer = &w.other_ca}, "NOT trusted");
    expect_refused(&w, (struct cert_options){.cn = "node-1"}, "NOT trusted");
    expect_refused(
        &w, (struct cert_options){.cn = "n", .usage = "serverAuth", .issuer = &w.ca}, "purpose");
    expect_refused(&w, (struct cert_options){.cn = NULL, .issuer = &w.ca}, "common name");
    expect_refused(
        &w, (struct cert_options){.cn = "a", .second_cn = "b", .issuer = &w.ca}, "common name");
    struct cert node = cert_make(&(struct cert_options){.cn = "node-1", .issuer = &w.ca});
    expect_refused(&w, (struct cert_options){.cn = "node-2", .issuer = &node}, "NOT trusted");
    cert_deinit(&node);
    teardown(&w);
}

/* The connection stays open; the name does not outlive the certificate. */
static void a_name_expires_with_its_certificate(void **state)
{
    (void)state;
    struct world w;
    setup(&w, NULL);
    struct cert a =
        cert_make(&(struct cert_options){.cn = "node-1", .valid_s = 3, .issuer = &w.ca});
    struct outcome o = {0};
    whoami(&w, &a, &o);
    assert_true(str_starts(buf_str(&o.body), "cn=node-1;error=-;"));
    for (int i = 0; i < 100000 && str_starts(buf_str(&o.body), "cn=node-1;"); i++) {
        outcome_deinit(&o);
        whoami(&w, &a, &o);
    }
    assert_true(str_starts(buf_str(&o.body), "cn=-;error="));
    assert_non_null(strstr(buf_str(&o.body), "expired"));
    outcome_deinit(&o);
    cert_deinit(&a);
    teardown(&w);
}

static void expect_denied(struct world *w, struct http_request q)
{
    struct outcome o;
    rig_fetch(&w->rig, "GET", "/hello", q, &o);
    if (o.kind != ERR_DENIED)
        fail_msg("got %s: %s", err_kind_name(o.kind), o.text);
    outcome_deinit(&o);
}

static void a_server_of_another_ca_is_refused(void **state)
{
    (void)state;
    struct world w;
    setup(&w, NULL);
    /* has the same name */
    expect_denied(&w, (struct http_request){.tls = {.ca_pem = w.other_ca.cert_pem}});
    struct cert third = cert_make(&(struct cert_options){.cn = "another CA", .is_ca = true});
    expect_denied(&w, (struct http_request){.tls = {.ca_pem = third.cert_pem}});
    cert_deinit(&third);
    expect_denied(&w, (struct http_request){0}); /* the system does not know our CA */
    assert_int_equal(w.rig.n_requests, 0);
    teardown(&w);
}

/* A directory of trusted certificates, like the system's, with one certificate. */
static char *make_ca_dir(const struct cert *ca)
{
    char *dir = mem_strdup("/tmp/belay-ca-XXXXXX"), hash[16];
    struct err e;
    assert_non_null(mkdtemp(dir));
    cert_name_hash(ca, hash, sizeof(hash));
    char *paths[] = {mem_printf("%s/%s.0", dir, hash), mem_printf("%s/ca-certificates.crt", dir)};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(
            fs_write_atomic(paths[i], ca->cert_pem, strlen(ca->cert_pem), 0644, &e), 0);
        free(paths[i]);
    }
    return dir;
}

enum { OTHER_REFUSED = 10, OTHER_TRUSTED, NO_NAMESPACE, NOT_THE_SYSTEMS };

/* In a child: replaces the system's directory by dir, for this process only, and queries a server
 * certified only by it: first trusting only another CA, then the system. */
static int ask_with_system_ca(struct world *w, const char *dir)
{
    struct outcome o;
    if ((unshare(CLONE_NEWNS) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0) ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount(dir, "/etc/ssl/certs", NULL, MS_BIND, NULL) < 0)
        return NO_NAMESPACE;
    rig_fetch(&w->rig, "GET", "/hello", (struct http_request){0}, &o);
    if (o.status != 200)
        return NOT_THE_SYSTEMS;
    struct cert third = cert_make(&(struct cert_options){.cn = "another CA", .is_ca = true});
    rig_fetch(
        &w->rig, "GET", "/hello", (struct http_request){.tls = {.ca_pem = third.cert_pem}}, &o);
    return o.kind == ERR_DENIED ? OTHER_REFUSED : OTHER_TRUSTED;
}

static void a_given_ca_replaces_the_system_cas(void **state)
{
    (void)state;
    struct world w;
    struct err e;
    int status;
    struct cert ca = cert_make(&(struct cert_options){.cn = "belay CA", .is_ca = true});
    char *dir = make_ca_dir(&ca);
    pid_t pid = fork();
    if (pid == 0) {
        setup(&w, &ca);
        _exit(ask_with_system_ca(&w, dir));
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == NO_NAMESPACE || WEXITSTATUS(status) == NOT_THE_SYSTEMS)
        print_message(
            "SKIP: no mount namespace, or libcurl trusts another directory than /etc/ssl/certs\n");
    else
        assert_int_equal(WEXITSTATUS(status), OTHER_REFUSED);
    assert_int_equal(fs_remove_tree(dir, &e), 0);
    free(dir);
    cert_deinit(&ca);
}

static void the_certificate_must_have_the_requested_name(void **state)
{
    (void)state;
    struct world w;
    struct outcome o;
    setup(&w, NULL);
    struct http_request q = trusting(&w);
    q.tls.verify_name = "belayd";
    rig_fetch(&w.rig, "GET", "/target?x=1", q, &o);
    if (o.kind != ERR_NONE)
        fail_msg("%s", o.text);
    assert_string_equal(buf_str(&o.body), "/target|/target?x=1|1");
    outcome_deinit(&o);
    q.tls.verify_name = "another";
    expect_denied(&w, q);
    struct http_request by_host = trusting(&w);
    char url[64];
    snprintf(url, sizeof(url), "https://localhost:%d/hello", http_server_port(w.rig.server));
    by_host.url = url; /* the certificate does not have this name */
    expect_denied(&w, by_host);
    by_host.tls.verify_name = "belayd";
    rig_fetch(&w.rig, "GET", "", by_host, &o);
    assert_int_equal(o.status, 200);
    outcome_deinit(&o);
    teardown(&w);
}

static void an_expired_server_is_refused(void **state)
{
    (void)state;
    struct world w;
    setup(&w, NULL);
    struct cert old = cert_make(&(struct cert_options){
        .cn = "belayd", .san = "IP:127.0.0.1", .is_expired = true, .issuer = &w.ca});
    http_server_stop(w.rig.server);
    rig_serve(
        &w.rig, (struct http_server_options){.cert_pem = old.cert_pem, .key_pem = old.key_pem});
    expect_denied(&w, trusting(&w));
    cert_deinit(&old);
    teardown(&w);
}

static void a_malformed_key_is_refused_and_not_quoted(void **state)
{
    (void)state;
    struct world w;
    struct outcome o;
    setup(&w, NULL);
    struct http_request q = trusting(&w);
    q.tls.cert_pem = "no certificate";
    q.tls.key_pem = "hush-hush";
    rig_fetch(&w.rig, "GET", "/hello", q, &o);
    assert_int_equal(o.kind, ERR_DENIED);
    assert_null(strstr(o.text, "hush-hush"));
    outcome_deinit(&o);
    teardown(&w);
}

static void http_and_https_mixed_up_is_an_error(void **state)
{
    (void)state;
    struct world w;
    struct outcome o;
    char url[64];
    setup(&w, NULL);
    snprintf(url, sizeof(url), "http://127.0.0.1:%d/hello", http_server_port(w.rig.server));
    rig_fetch(&w.rig, "GET", "", (struct http_request){.url = url}, &o);
    assert_true(o.kind != ERR_NONE);
    outcome_deinit(&o);
    struct http_server *tls = w.rig.server;
    rig_serve(&w.rig, (struct http_server_options){0});
    snprintf(url, sizeof(url), "https://127.0.0.1:%d/hello", http_server_port(w.rig.server));
    struct http_request q = trusting(&w);
    q.url = url;
    rig_fetch(&w.rig, "GET", "", q, &o);
    assert_int_equal(o.kind, ERR_UNAVAILABLE);
    outcome_deinit(&o);
    http_server_stop(tls);
    teardown(&w);
}

static void parked_requests_bodies_and_stop_work_over_tls(void **state)
{
    (void)state;
    struct world w;
    struct outcome big, echo, parked;
    static char body[60000];
    setup(&w, NULL);
    memset(body, 'b', sizeof(body));
    struct http_request q = trusting(&w);
    rig_fetch(&w.rig, "GET", "/big", q, &big);
    assert_int_equal(big.body.len, 1 << 20);
    q.body = body;
    q.body_len = sizeof(body);
    rig_fetch(&w.rig, "POST", "/echo", q, &echo);
    assert_int_equal(echo.body.len, sizeof(body));
    rig_start(&w.rig, "GET", "/park", trusting(&w), &parked);
    rig_run_until_count(&w.rig, &w.rig.n_parked, 1);
    http_server_stop(w.rig.server);
    w.rig.server = NULL;
    rig_run_until(&w.rig, &parked.is_done);
    assert_int_equal(parked.status, 503);
    outcome_deinit(&big);
    outcome_deinit(&echo);
    outcome_deinit(&parked);
    teardown(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_burst_of_handshakes_does_not_delay_an_open_connection),
        cmocka_unit_test(a_client_without_a_certificate_has_no_name),
        cmocka_unit_test(a_verified_certificate_gives_its_name),
        cmocka_unit_test(certificates_that_do_not_verify_give_no_name),
        cmocka_unit_test(a_name_expires_with_its_certificate),
        cmocka_unit_test(a_server_of_another_ca_is_refused),
        cmocka_unit_test(a_given_ca_replaces_the_system_cas),
        cmocka_unit_test(the_certificate_must_have_the_requested_name),
        cmocka_unit_test(an_expired_server_is_refused),
        cmocka_unit_test(a_malformed_key_is_refused_and_not_quoted),
        cmocka_unit_test(http_and_https_mixed_up_is_an_error),
        cmocka_unit_test(parked_requests_bodies_and_stop_work_over_tls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
