/* SPDX-License-Identifier: Apache-2.0
 *
 * belay up: starts belayd and an agent unless they run. Safe to run twice.
 */
#include "cli/local.h"
#include "cli/verbs.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/time.h"
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define START_MS 30000
#define JOIN_MS 30000
#define OUTPUT_MAX (16u << 10) /* bytes shown of the output of a program that did not start */
#define CPUS_MAX 65536

enum { VAL_CONFIG = 1, VAL_NO_AGENT, VAL_CPUS };

struct up {
    char *home;
    const char *config; /* NULL for our own */
    bool no_agent;
    int64_t cpus; /* CPUs that the node offers to jobs; 0 = all of the machine's */
    struct client *client;
    struct mono spawned;
    json_t *node; /* our agent's node, once it has joined */
    char *output; /* output of the program that did not start; NULL if all started */
};

static int on_option(void *ctx, int val, const char *arg)
{
    struct up *u = ctx;
    if (val == VAL_NO_AGENT) {
        u->no_agent = true;
        return CLI_OK;
    }
    if (val == VAL_CPUS) {
        struct err e;
        if (str_to_i64(arg, 1, CPUS_MAX, "--cpus", &u->cpus, &e) == 0)
            return CLI_OK;
        cli_error("%s", e.text);
        return CLI_USAGE;
    }
    u->config = realpath(arg, NULL);
    if (!u->config) {
        cli_error("--config: there is no file %s", arg);
        return CLI_USAGE;
    }
    return CLI_OK;
}

static char *in_home(const struct up *u, const char *name)
{
    return mem_printf("%s/%s", u->home, name);
}

/* ---- belayd ---- */

static void add_quoted(struct buf *out, const char *key, const char *value);

/* `state` is in the file so that a belayd that is started by hand finds the same cluster. */
static int write_own_config(const struct up *u, const char *path, struct err *e)
{
    struct buf text = {0};
    if (fs_exists(path))
        return 0;
    buf_adds(&text, "# Written by belay up. docs/reference/configuration.md describes every key.\n"
                    "cluster: local\n"
                    "listen: 127.0.0.1:0\n");
    add_quoted(&text, "state", u->home);
    int rc = fs_write_atomic(path, text.data, text.len, 0600, e);
    buf_deinit(&text);
    return rc;
}

static int64_t size_of(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? st.st_size : 0;
}

/* The log from the offset on: at most its last OUTPUT_MAX bytes, in complete lines. Never NULL. */
static char *read_output(const char *log, int64_t from)
{
    int64_t size = size_of(log);
    bool is_cut = size - from > OUTPUT_MAX;
    char *text = mem_alloc(OUTPUT_MAX + 1), *line;
    int fd = open(log, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    ssize_t n = fd < 0 ? 0 : pread(fd, text, OUTPUT_MAX, is_cut ? size - OUTPUT_MAX : from);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    line = is_cut ? strchr(text, '\n') : NULL;
    if (line)
        memmove(text, line + 1, strlen(line + 1) + 1);
    return text;
}

/* Adds to the error where the program's output since its start is, and keeps that output. */
static void add_output(
    struct up *u, const char *program, const char *log, int64_t from, struct err *e)
{
    u->output = read_output(log, from);
    if (u->output[0])
        err_set(e, e->kind, "%s did not start: %.200s. Its output, also in %.200s:", program,
            e->text, log);
    else
        err_set(e, e->kind, "%s did not start: %.200s. It printed nothing into %.200s", program,
            e->text, log);
}

/* Prints line by line, without anything that could change the terminal. */
static void print_output(const char *text)
{
    char *copy = mem_strdup(text), *rest = copy, *line;
    while ((line = strsep(&rest, "\n"))) {
        str_sanitize(line, strlen(line));
        if (line[0])
            fprintf(stderr, "  %s\n", line);
    }
    free(copy);
}

/* Reads belayd's address each time, because belayd writes it when it is ready. */
static bool answers(void *ctx)
{
    struct up *u = ctx;
    json_t *v = NULL;
    struct err e;
    char *info = in_home(u, "belayd.json");
    bool runs = local_pid(info, "belayd") != 0;
    free(info);
    if (!runs || local_use(u->home, &e) != 0)
        return false;
    client_destroy(u->client);
    u->client = NULL;
    int rc = client_create(&u->client, &e);
    if (rc == 0)
        rc = client_json(u->client, "GET", "/api/v1/version", NULL, &v, &e);
    json_decref(v);
    return rc == 0;
}

static int start_belayd(struct up *u, struct err *e)
{
    char *own = in_home(u, "belayd.yaml"), *log = in_home(u, "belayd.log"),
         *program = local_program("belayd");
    pid_t pid;
    int64_t from = size_of(log);
    int rc = u->config ? 0 : write_own_config(u, own, e);
    const char *argv[] = {
        program, "--state", u->home, "--config", u->config ? u->config : own, NULL};
    if (rc == 0)
        rc = local_spawn(argv, log, &pid, e);
    if (rc == 0) {
        rc = local_wait(pid, START_MS, answers, u, e);
        if (rc != 0)
            add_output(u, "belayd", log, from, e);
    }
    free(own);
    free(log);
    free(program);
    return rc;
}

/* ---- the agent ---- */

/* The name of the first reserved pool; NULL if there is none, or after an error. */
static char *reserved_pool(struct up *u, struct err *e)
{
    json_t *v = NULL, *pool;
    char *name = NULL;
    size_t i;
    client_json(u->client, "GET", "/api/v1/pools", NULL, &v, e);
    json_array_foreach(json_object_get(v, "pools"), i, pool)
    {
        if (!name && str_eq(cli_text(pool, "kind"), "reserved"))
            name = mem_strdup(cli_text(pool, "name"));
    }
    json_decref(v);
    return name;
}

/* A new token for a join; the agent drops it once it has joined. */
static int write_token(struct up *u, const char *pool, struct err *e)
{
    char *path = in_home(u, "agent.token");
    json_t *request = json_pack("{s:s,s:s}", "kind", "join", "pool", pool), *reply = NULL;
    int rc = client_json(u->client, "POST", "/api/v1/tokens", request, &reply, e);
    if (rc == 0) {
        const char *token = cli_text(reply, "token");
        rc = fs_write_atomic(path, token, strlen(token), 0600, e);
    }
    json_decref(request);
    json_decref(reply);
    free(path);
    return rc;
}

static void add_indented(struct buf *out, const char *text)
{
    while (*text) {
        size_t n = strcspn(text, "\n");
        buf_adds(out, "  ");
        buf_add(out, text, n);
        buf_addc(out, '\n');
        text += n + (text[n] == '\n');
    }
}

/* A JSON string is a valid quoted YAML scalar. */
static void add_quoted(struct buf *out, const char *key, const char *value)
{
    json_t *v = json_text(value);
    char *quoted = json_dump_text(v);
    buf_printf(out, "%s: %s\n", key, quoted);
    free(quoted);
    json_decref(v);
}

/* Root's own cluster runs root's jobs; any other agent can only run its own user's jobs. */
static void add_own_user(struct buf *text)
{
    const struct passwd *pw = geteuid() == 0 ? getpwuid(0) : NULL;
    if (geteuid() == 0)
        buf_printf(text, "system_users: [\"%s\"]\n", pw ? pw->pw_name : "belay");
}

/* Written at every start, because belayd's address may have changed. */
static int write_agent_config(struct up *u, struct err *e)
{
    struct buf text = {0}, ca = {0};
    char *path = in_home(u, "agent.yaml"), *ca_path = in_home(u, "ca.pem");
    char *dir = in_home(u, "agent"), *token = in_home(u, "agent.token");
    json_t *v = NULL;
    int rc = client_json(u->client, "GET", "/api/v1/version", NULL, &v, e);
    if (rc == 0)
        rc = fs_read(ca_path, 65536, &ca, e);
    if (rc == 0) {
        buf_adds(&text,
            "# Written anew by each belay up: changes are lost. For other settings start belayd\n"
            "# with belay up --no-agent, and belay-agent --config with a copy of this.\n"
            "provider: none\n");
        add_quoted(&text, "server", cli_text(v, "listen"));
        add_quoted(&text, "dir", dir);
        add_quoted(&text, "token_file", token);
        add_own_user(&text);
        if (u->cpus > 0)
            buf_printf(&text, "cpus: %lld\n", (long long)u->cpus);
        buf_adds(&text, "ca: |\n");
        add_indented(&text, buf_str(&ca));
        rc = fs_write_atomic(path, text.data, text.len, 0600, e);
    }
    json_decref(v);
    buf_deinit(&text);
    buf_deinit(&ca);
    free(path);
    free(ca_path);
    free(dir);
    free(token);
    return rc;
}

/* Stores belayd's record of our agent's node in u->node; false if there is none, or it has been
 * silent for silent_ms. */
static bool find_node(struct up *u, int64_t silent_ms)
{
    json_t *v = NULL, *node;
    struct err e;
    size_t i;
    int64_t own = local_node(u->home);
    if (own == 0 || client_json(u->client, "GET", "/api/v1/nodes", NULL, &v, &e) != 0)
        return false;
    json_decref(u->node);
    u->node = NULL;
    json_array_foreach(json_object_get(v, "nodes"), i, node)
    {
        if (cli_int(node, "id", 0) == own && cli_int(node, "silent_ms", INT64_MAX) <= silent_ms)
            u->node = json_incref(node);
    }
    json_decref(v);
    return u->node != NULL;
}

static bool has_joined(void *ctx)
{
    struct up *u = ctx;
    return find_node(u, clock_mono(&clock_system).ms - u->spawned.ms);
}

static int spawn_agent(struct up *u, struct err *e)
{
    char *config = in_home(u, "agent.yaml"), *log = in_home(u, "agent.log"),
         *program = local_program("belay-agent");
    char *pid_path = in_home(u, "agent.pid");
    const char *argv[] = {program, "--config", config, NULL};
    char text[64];
    int64_t from = size_of(log);
    pid_t pid;
    u->spawned = clock_mono(&clock_system);
    int rc = local_spawn(argv, log, &pid, e);
    if (rc == 0) {
        snprintf(text, sizeof(text), "{\"pid\": %d}\n", (int)pid);
        rc = fs_write_atomic(pid_path, text, strlen(text), 0600, e);
    }
    if (rc == 0) {
        rc = local_wait(pid, JOIN_MS, has_joined, u, e);
        if (rc != 0)
            add_output(u, "the agent", log, from, e);
    }
    free(config);
    free(log);
    free(program);
    free(pid_path);
    return rc;
}

/* `belay down` drained the node. */
static int undrain(struct up *u, struct err *e)
{
    json_t *v = NULL;
    if (!u->node || !str_eq(cli_text(u->node, "state"), "draining"))
        return 0;
    const char *path = CLI_PATH("/api/v1/nodes/%lld/undrain", (long long)cli_int(u->node, "id", 0));
    int rc = client_json(u->client, "POST", path, NULL, &v, e);
    json_decref(v);
    return rc;
}

static int start_agent(struct up *u, struct err *e)
{
    char *pid_path = in_home(u, "agent.pid");
    bool runs = local_pid(pid_path, "belay-agent") != 0, known = find_node(u, INT64_MAX);
    char *pool = NULL;
    int rc = 0;
    *e = (struct err){0};
    if (!runs && !known) {
        pool = reserved_pool(u, e);
        rc = pool ? write_token(u, pool, e) : (int)e->kind;
    }
    if (rc == 0 && !runs && (known || pool))
        rc = write_agent_config(u, e);
    if (rc == 0 && !runs && (known || pool))
        rc = spawn_agent(u, e);
    if (rc == 0)
        rc = undrain(u, e);
    free(pool);
    free(pid_path);
    return rc;
}

/* ---- main ---- */

static int start_all(struct up *u, struct err *e)
{
    int rc = fs_mkdirs(u->home, 0700, e);
    if (rc == 0 && !answers(u))
        rc = start_belayd(u, e);
    if (rc == 0 && !u->no_agent)
        rc = start_agent(u, e);
    return rc;
}

static void report(const struct up *u, bool json)
{
    if (json) {
        json_t *o = json_pack("{s:s,s:O?}", "home", u->home, "node", u->node);
        cli_print_json(o);
        json_decref(o);
        return;
    }
    char cpus[CLI_COUNT_MAX];
    printf("belayd is up in %s\n", u->home);
    if (!u->node && !u->no_agent)
        printf("no agent was started: no pool of the configuration is reserved, so this machine "
               "runs no jobs\n");
    if (u->node)
        printf("node %s: %s, %lld MiB\n", cli_text(u->node, "name"),
            cli_count(cli_int(u->node, "cpus", 0), "cpu", cpus),
            (long long)cli_int(u->node, "memory_mib", 0));
    printf("submit a job with: belay submit train.sh\n");
}

static int run(int argc, const char **argv)
{
    struct up u = {.home = cli_home()};
    struct cli_args a;
    struct err e = {0};
    int rc = cli_parse(&verb_up, argc, argv, false, on_option, &u, &a);
    if (rc == 0 && local_use(u.home, &e) != 0) {
        cli_error("%s", e.text);
        rc = CLI_USAGE;
    }
    if (rc == 0) {
        int failed = start_all(&u, &e);
        if (failed != 0)
            cli_error("%s", e.text);
        else
            report(&u, a.json);
        if (failed && u.output)
            print_output(u.output);
        rc = failed ? CLI_FAILED : CLI_OK;
    }
    client_destroy(u.client);
    json_decref(u.node);
    free((char *)u.config);
    free(u.output);
    free(u.home);
    cli_args_deinit(&a);
    return rc < 0 ? CLI_OK : rc;
}

static const struct poptOption options[] = {
    {"config", 'c', POPT_ARG_STRING, NULL, VAL_CONFIG,
        "belayd's configuration (default: HOME/belayd.yaml)", "FILE"},
    {"no-agent", 0, POPT_ARG_NONE, NULL, VAL_NO_AGENT,
        "start belayd only; this machine runs no jobs", NULL},
    {"cpus", 0, POPT_ARG_STRING, NULL, VAL_CPUS,
        "number of cpus of this machine for jobs (default: all); applies when its agent first "
        "joins",
        "N"},
    POPT_TABLEEND,
};

const struct verb verb_up = {"up", CLI_NO_WORDS, "start belayd and an agent on this machine", run,
    options, false, .examples = "belay up\n"};
