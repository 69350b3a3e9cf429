/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/emulator/rig.h"
#include "base/b64.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/time.h"
#include "base/uv/proc.h"
#include "cloud/aws/sigv4.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define REPLY_MAX (16u << 20)
#define WAIT_S 30

static const char configuration[] =
    "keys: [{access_key: " RIG_ACCESS_KEY ", secret_key: " RIG_SECRET_KEY "}]\n"
    "boot_delay_ms: 50\n"
    "dir: instances\n"
    "pools:\n"
    "  - {zone: us-east-1a, type: g6.xlarge, spot: {capacity: 10}}\n"
    "  - {zone: us-east-1b, type: g6.xlarge, spot: {capacity: 0}}\n";

/* ---- Starting and stopping ---- */

void rig_path(const struct rig *r, const char *name, char *out, size_t size)
{
    snprintf(out, size, "%s/%s", r->dir, name);
}

static void write_text(const char *path, const char *a, const char *b)
{
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    assert_true(fputs(a, f) >= 0 && fputs(b, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void spawn(struct rig *r, const char *config, const char *ports)
{
    char log[128];
    rig_path(r, "log", log, sizeof(log));
    r->pid = fork();
    assert_true(r->pid >= 0);
    if (r->pid > 0)
        return;
    prctl(PR_SET_PDEATHSIG, SIGTERM); /* a failing test must leave nothing either */
    int out = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(out, 1);
    dup2(out, 2);
    close_range(3, ~0U, 0);
    execl(EMULATOR, "belay-emulator", "--config", config, "--port-file", ports, NULL);
    _exit(127);
}

/* The port file appears by a rename, which is the awaited event; or the program ends. */
static void wait_until_ready(struct rig *r, int watch)
{
    union {
        struct inotify_event event;
        char bytes[4096];
    } u;
    int child = (int)syscall(SYS_pidfd_open, r->pid, 0);
    struct pollfd fds[] = {{.fd = watch, .events = POLLIN}, {.fd = child, .events = POLLIN}};
    for (bool is_ready = false; !is_ready;) {
        int n = poll(fds, 2, WAIT_S * 1000);
        if (n <= 0 || fds[1].revents || read(watch, &u, sizeof(u)) <= 0)
            fail_msg("the emulator does not become ready; its log is %s/log", r->dir);
        is_ready = str_eq(u.event.name, "ports.json");
    }
    close(child);
    close(watch);
}

static void read_port(const json_t *ports, const char *name, char *out, size_t size)
{
    const char *url = json_string_value(json_object_get(ports, name));
    assert_non_null(url);
    snprintf(out, size, "%s", url + strlen("http://"));
}

void rig_start(struct rig *r, const char *more)
{
    char config[128], ports[128];
    struct buf text = {0};
    struct err e;
    json_t *v = NULL;
    *r = (struct rig){.dir = "/tmp/belay-test.XXXXXX"};
    assert_non_null(mkdtemp(r->dir));
    rig_path(r, "emulator.yaml", config, sizeof(config));
    rig_path(r, "ports.json", ports, sizeof(ports));
    write_text(config, configuration, more);
    int watch = inotify_init1(IN_CLOEXEC);
    assert_true(inotify_add_watch(watch, r->dir, IN_MOVED_TO) >= 0);
    spawn(r, config, ports);
    wait_until_ready(r, watch);
    assert_int_equal(fs_read(ports, 65536, &text, &e), 0);
    assert_int_equal(json_parse(buf_str(&text), text.len, 65536, &v, &e), 0);
    read_port(v, "ec2", r->ec2, sizeof(r->ec2));
    read_port(v, "control", r->control, sizeof(r->control));
    json_decref(v);
    buf_deinit(&text);
}

static void tell_log(const struct rig *r)
{
    char path[128];
    struct buf text = {0};
    struct err e;
    rig_path(r, "log", path, sizeof(path));
    if (fs_read(path, 1 << 20, &text, &e) == 0)
        fwrite(text.data, 1, text.len, stderr);
    buf_deinit(&text);
}

int rig_stop(struct rig *r)
{
    int status = 0;
    struct err e;
    if (r->pid) {
        kill(r->pid, SIGTERM);
        assert_int_equal(waitpid(r->pid, &status, 0), r->pid);
    }
    if (status != 0)
        tell_log(r);
    assert_int_equal(fs_remove_tree(r->dir, &e), 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* ---- HTTP ---- */

static int connect_to(const char *host)
{
    char address[64];
    struct sockaddr_in a = {.sin_family = AF_INET};
    snprintf(address, sizeof(address), "%s", host);
    char *colon = strchr(address, ':');
    a.sin_port = htons(colon ? (uint16_t)atoi(colon + 1) : 80);
    if (colon)
        *colon = '\0';
    assert_int_equal(inet_pton(AF_INET, address, &a.sin_addr), 1);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const struct timeval patience = {.tv_sec = WAIT_S + 15};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    if (connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
        fail_msg("cannot connect to %s: %s", host, strerror(errno));
    return fd;
}

int rig_http(const char *host, const char *method, const char *target, const char *headers,
    const char *body, struct buf *ret_body)
{
    struct buf reply = {0};
    struct err e;
    char piece[65536];
    ssize_t n;
    int status = 0, fd = connect_to(host);
    char *request = mem_printf(
        "%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\nContent-Length: %zu\r\n%s\r\n%s",
        method, target, host, strlen(body), headers, body);
    assert_int_equal(fs_write_all(fd, request, strlen(request), &e), 0);
    free(request);
    while ((n = read(fd, piece, sizeof(piece))) > 0)
        assert_int_equal(buf_add_limited(&reply, piece, (size_t)n, REPLY_MAX, &e), 0);
    close(fd);
    const char *text = buf_str(&reply), *end = strstr(text, "\r\n\r\n");
    buf_clear(ret_body);
    if (end && sscanf(text, "HTTP/1.1 %d", &status) == 1)
        buf_adds(ret_body, end + 4);
    buf_deinit(&reply);
    return status;
}

static int call(
    struct rig *r, const char *service, const char *more, const char *body, struct buf *ret_body)
{
    char date[SIGV4_TIMESTAMP_MAX], hash[SIGV4_HEX_MAX];
    struct buf authorization = {0};
    struct err e;
    sigv4_timestamp(clock_wall(&clock_system), date);
    sigv4_sha256_hex(body, strlen(body), hash);
    const struct http_header headers[] = {{"Host", r->ec2}, {"X-Amz-Date", date}};
    const struct sigv4_request request = {"POST", "/", headers, 2, hash};
    const struct sigv4_scope scope = {date, "us-east-1", service};
    assert_int_equal(
        sigv4_authorization(&request, &scope, RIG_ACCESS_KEY, RIG_SECRET_KEY, &authorization, &e),
        0);
    char *lines = mem_printf(
        "%sX-Amz-Date: %s\r\nAuthorization: %s\r\n", more, date, buf_str(&authorization));
    int status = rig_http(r->ec2, "POST", "/", lines, body, ret_body);
    free(lines);
    buf_deinit(&authorization);
    return status;
}

int rig_call(struct rig *r, const char *body, struct buf *ret_body)
{
    char *whole = mem_printf("%s&Version=2016-11-15", body);
    int status = call(r, "ec2", "", whole, ret_body);
    free(whole);
    return status;
}

int rig_list_call(struct rig *r, const char *body, struct buf *ret_body)
{
    return call(r, "pricing",
        "Content-Type: application/x-amz-json-1.1\r\nX-Amz-Target: "
        "AWSPriceListService.GetProducts\r\n",
        body, ret_body);
}

void rig_launch(struct rig *r, char id[RIG_ID_MAX], const char *user_data, ...)
{
    struct buf coded = {0}, body = {0}, reply = {0};
    char raw[4096];
    va_list args;
    va_start(args, user_data);
    int n = vsnprintf(raw, sizeof(raw), user_data, args);
    va_end(args);
    b64_encode(&coded, raw, (size_t)n);
    buf_adds(&body, "Action=RunInstances&ImageId=ami-1&InstanceType=g6.xlarge&MinCount=1&MaxCount=1"
                    "&InstanceMarketOptions.MarketType=spot&InstanceInitiatedShutdownBehavior="
                    "terminate&UserData=");
    str_url_encode(&body, buf_str(&coded), coded.len);
    if (rig_call(r, buf_str(&body), &reply) != 200)
        fail_msg("%s", buf_str(&reply));
    const char *at = strstr(buf_str(&reply), "<instanceId>");
    assert_non_null(at);
    snprintf(id, RIG_ID_MAX, "%.*s", (int)strcspn(at + 12, "<"), at + 12);
    buf_deinit(&coded);
    buf_deinit(&body);
    buf_deinit(&reply);
}

/* ---- Control ---- */

static json_t *control(struct rig *r, const char *method, const char *target, const char *body)
{
    struct buf reply = {0};
    json_t *v = NULL;
    struct err e;
    if (rig_http(r->control, method, target, "", body, &reply) != 200)
        fail_msg("%s %s %s: %s", method, target, body, buf_str(&reply));
    assert_int_equal(json_parse(buf_str(&reply), reply.len, REPLY_MAX, &v, &e), 0);
    buf_deinit(&reply);
    return v;
}

void rig_event(struct rig *r, const char *json)
{
    json_decref(control(r, "POST", "/events", json));
}

json_t *rig_state(struct rig *r)
{
    return control(r, "GET", "/state", "");
}

json_t *rig_instance(struct rig *r, const char *id)
{
    json_t *state = rig_state(r), *found = NULL, *i;
    size_t k;
    json_array_foreach(json_object_get(state, "instances"), k,
        i) if (str_eq(json_string_value(json_object_get(i, "instance")), id)) found =
        json_incref(i);
    json_decref(state);
    if (!found)
        fail_msg("there is no %s", id);
    return found;
}

static bool is_entry(const json_t *entry, const char *what, const char *id)
{
    return str_eq(json_string_value(json_object_get(entry, "what")), what) &&
           str_eq(json_string_value(json_object_get(entry, "instance")), id);
}

void rig_wait(struct rig *r, const char *what, const char *id)
{
    struct mono end = {clock_mono(&clock_system).ms + SECONDS_MS(WAIT_S)};
    while (clock_mono(&clock_system).ms < end.ms) {
        char target[100];
        snprintf(target, sizeof(target), "/events?after=%lld&wait_s=%d", (long long)r->seq, WAIT_S);
        json_t *reply = control(r, "GET", target, ""), *events = json_object_get(reply, "events"),
               *entry;
        size_t k;
        bool found = false;
        json_array_foreach(events, k, entry)
        {
            if (found)
                break;
            r->seq = json_integer_value(json_object_get(entry, "seq"));
            found = is_entry(entry, what, id);
        }
        json_decref(reply);
        if (found)
            return;
    }
    fail_msg("no \"%s\" of %s came", what, id);
}

/* ---- Processes ---- */

void rig_make_fifo(const struct rig *r, const char *name)
{
    char path[128];
    rig_path(r, name, path, sizeof(path));
    assert_int_equal(mkfifo(path, 0600), 0);
}

void rig_read_pids(const struct rig *r, const char *name, pid_t *pids, size_t n)
{
    char path[128], text[1024] = "";
    size_t len = 0, n_lines = 0;
    rig_path(r, name, path, sizeof(path));
    int fd = open(path, O_RDWR | O_CLOEXEC); /* RDWR: no EOF between two writers */
    struct pollfd p = {.fd = fd, .events = POLLIN};
    while (n_lines < n) {
        if (poll(&p, 1, WAIT_S * 1000) != 1)
            fail_msg("%zu of %zu processes did not say who they are", n - n_lines, n);
        ssize_t got = read(fd, text + len, sizeof(text) - 1 - len);
        assert_true(got > 0);
        len += (size_t)got;
        text[len] = '\0';
        n_lines = 0;
        for (const char *s = text; (s = strchr(s, '\n')); s++)
            n_lines++;
    }
    close(fd);
    const char *s = text;
    for (size_t i = 0; i < n; i++, s = strchr(s, '\n') + 1)
        pids[i] = (pid_t)atoi(s);
}

bool rig_is_alive(pid_t pid)
{
    return proc_start_ticks(pid) != 0;
}
