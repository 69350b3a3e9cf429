/* SPDX-License-Identifier: Apache-2.0
 *
 * belayd's listeners: their ports, certificates and limits, and the file that lists their addresses
 * (belayd.json).
 */
#include "scheduler/daemon_private.h"

#include "base/fs.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/uv/http_listen.h"
#include "base/uv/http_server.h"
#include "scheduler/api/api.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)
#define IDLE_MS 60000
/* The range searched for port 0: above the ports of services, below the range that Linux uses for
 * outgoing connections (ip_local_port_range). */
#define PORT_FIRST 10000
#define PORT_LAST 29999
#define PORT_TRIES 32

/* Limits of each listener; docs/reference/api.md states them. A connection counts as a stranger's
 * until one of its requests presents a token or a node's certificate: a half-finished TLS handshake
 * takes some 25 KiB, 2048 of them 50 MiB. There is no limit per address: users behind one NAT may
 * take all connections, and a flood from one address does not keep others out (http_admission.h).
 * On the UNIX socket every connection is a user's. */
static void set_limits(
    const struct open_files *f, struct http_class_limits limits[HTTP_CLASSES], int users)
{
    limits[HTTP_STRANGER] =
        (struct http_class_limits){.max_connections = f->unauthenticated, .max_bytes = 8 * MIB};
    limits[HTTP_USER] = (struct http_class_limits){.max_connections = users,
        .max_connections_each = f->users_each,
        .max_bytes = 64 * MIB,
        .max_bytes_each = 24 * MIB};
    limits[HTTP_NODE] = (struct http_class_limits){.max_connections = f->nodes,
        .max_connections_each = f->nodes_each,
        .max_bytes = 256 * MIB,
        .max_bytes_each = 32 * MIB};
}

/* The port of the first start is kept, so that agents find belayd after a restart. */
static int remembered_port(const struct daemon *d)
{
    char *path = mem_printf("%s/port", d->config->state_dir);
    struct buf text = {0};
    int64_t port = 0;
    if (d->config->listen_port == 0 && fs_read(path, 16, &text, NULL) == 0)
        str_to_i64(buf_str(&text), 1, 65535, "port", &port, NULL);
    buf_deinit(&text);
    free(path);
    return d->config->listen_port ? d->config->listen_port : (int)port;
}

static int remember_port(const struct daemon *d, int port, struct err *e)
{
    char *path = mem_printf("%s/port", d->config->state_dir);
    char text[16];
    snprintf(text, sizeof(text), "%d", port);
    int rc = fs_write_atomic(path, text, strlen(text), 0600, e);
    free(path);
    return rc;
}

/* Selects a port itself, because a port chosen by the kernel may be used by an outgoing connection
 * while belayd is down. */
static int listen_anywhere(struct daemon *d, struct err *e)
{
    int rc = -1;
    for (int i = 0; i < PORT_TRIES && rc != 0; i++)
        rc = http_listen_tcp(d->config->listen_host,
            (int)prng_range(&d->prng, PORT_FIRST, PORT_LAST), &d->tls_fd, &d->tls_port, e);
    return rc;
}

int daemon_take_port(struct daemon *d, struct err *e)
{
    int port = remembered_port(d);
    return port ? http_listen_tcp(d->config->listen_host, port, &d->tls_fd, &d->tls_port, e)
                : listen_anywhere(d, e);
}

int daemon_check_port(const struct config *c, struct err *e)
{
    struct err ignored;
    int fd = -1, port;
    int rc = http_listen_tcp(c->listen_host, c->listen_port, &fd, &port, e);
    if (rc == ERR_IO && http_listen_tcp(c->listen_host, 0, &fd, &port, &ignored) == 0)
        rc = 0; /* the address is this machine's; only the port is in use */
    if (fd >= 0)
        close(fd);
    return rc == 0 ? 0 : err_wrap(e, "listen");
}

static int listen_tls(struct daemon *d, struct err *e)
{
    char *cert = NULL, *key = NULL, host[256] = "", server[256];
    const char *names[CONFIG_NAMES_MAX + 3];
    size_t n = 0;
    gethostname(host, sizeof(host) - 1);
    names[n++] = host;
    if (!str_eq(d->config->listen_host, "0.0.0.0") && !str_eq(d->config->listen_host, "::"))
        names[n++] = d->config->listen_host;
    config_server_host(d->config, server, sizeof(server));
    if (server[0])
        names[n++] = server;
    for (size_t i = 0; i < d->config->n_names; i++)
        names[n++] = d->config->names[i];
    int rc = ca_issue_server(d->ca, names, n, &cert, &key, e);
    if (rc != 0)
        return rc;
    struct http_server_options o = {
        .host = d->config->listen_host,
        .port = d->tls_port,
        .listen_fd = d->tls_fd,
        .cert_pem = cert,
        .key_pem = key,
        .client_ca_pem = ca_pem(d->ca),
        .max_body_bytes = API_BODY_MAX,
        .identify = api_identify,
        .idle_timeout_ms = IDLE_MS,
        .handler = api_handle,
        .ctx = d->api,
    };
    set_limits(&d->files, o.limits, d->files.users);
    rc = http_server_start(d->loop, &o, &d->tls_server, e);
    if (rc == 0)
        d->tls_fd = 0;
    explicit_bzero(key, strlen(key));
    free(key);
    free(cert);
    if (rc == 0)
        api_add_listener(d->api, d->tls_server);
    if (rc == 0)
        rc = remember_port(d, http_server_port(d->tls_server), e);
    return rc;
}

static int listen_unix(struct daemon *d, struct err *e)
{
    struct http_server_options o = {
        .unix_path = d->config->socket,
        .unix_mode = d->config->socket_users == SOCKET_ALL ? 0666 : 0600,
        .max_body_bytes = API_BODY_MAX,
        .identify = api_identify,
        .idle_timeout_ms = IDLE_MS,
        .handler = api_handle,
        .ctx = d->api,
    };
    set_limits(&d->files, o.limits, d->files.users_at_socket);
    int rc = http_server_start(d->loop, &o, &d->unix_server, e);
    if (rc == 0)
        api_add_listener(d->api, d->unix_server);
    return rc;
}

static void set_server_url(struct daemon *d)
{
    const char *host = d->config->listen_host;
    char own[256] = "";
    if (d->config->server_url[0]) {
        STR_COPY(d->server_url, d->config->server_url);
    } else {
        if (str_eq(host, "0.0.0.0") || str_eq(host, "::")) {
            gethostname(own, sizeof(own) - 1);
            host = own;
        }
        snprintf(d->server_url, sizeof(d->server_url), "https://%.200s:%d", host,
            http_server_port(d->tls_server));
    }
    api_set_server_url(d->api, d->server_url);
}

/* Writes belayd.json, by which `belay up` and users find belayd. */
static int write_info(const struct daemon *d, struct err *e)
{
    char *path = mem_printf("%s/belayd.json", d->config->state_dir);
    json_t *v = json_pack("{s:i,s:s,s:s,s:s,s:s}", "pid", (int)getpid(), "url", d->server_url,
        "socket", d->config->socket, "cluster", d->config->cluster, "version", BELAY_VERSION);
    char *text = json_dump_text(v);
    int rc = fs_write_atomic(path, text, strlen(text), 0644, e);
    free(text);
    json_decref(v);
    free(path);
    return rc;
}

int daemon_listen(struct daemon *d, struct err *e)
{
    int rc = listen_tls(d, e);
    if (rc == 0)
        rc = listen_unix(d, e);
    if (rc != 0)
        return rc;
    set_server_url(d);
    return write_info(d, e);
}
