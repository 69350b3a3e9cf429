/* SPDX-License-Identifier: Apache-2.0
 *
 * sinfo: belay's pools as partitions, and their nodes. Machines that an elastic pool may still
 * launch are shown as Slurm shows powered-down nodes: "idle~".
 */
#include "cli/slurm/slurm_programs.h"

#include "base/mem.h"
#include "base/str.h"
#include "cli/slurm/slurm.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define DEFAULT_FORMAT "%9P %.5a %.10l %.6D %.6t %N"
#define LONG_FORMAT "%9P %.5a %.10l %.10s %.4r %.8h %.10g %.6D %.11T %N"
#define NODES_FORMAT "%N %.6D %.9P %6t"
#define NODES_LONG_FORMAT "%N %.6D %.9P %.11T %.4c %.8z %.6m %.8d %.6w %.8f %20E"
#define SUMMARY_FORMAT "%9P %.5a %.10l %.16F %N"

enum value {
    POOL = 1,
    POOL_BARE,
    N_NODES,
    STATE,
    STATE_LONG,
    NODES,
    CPUS,
    CPUS_AIOT,
    MEMORY,
    GRES,
    FEATURES,
    REASON,
    NODES_AIOT,
    SOCKETS,
    ADDRESS,
    VERSION
};

static const struct slurm_field fields[] = {
    {"available", 'a', "AVAIL", 0, .fixed = "up"},
    {"features", 'f', "AVAIL_FEATURES", 0, FEATURES},
    {"features_act", 'b', "ACTIVE_FEATURES", 0, FEATURES},
    {"cpus", 'c', "CPUS", 0, CPUS},
    {"cpusstate", 'C', "CPUS(A/I/O/T)", 0, CPUS_AIOT},
    {"cpusload", 'O', "CPU_LOAD", 0, .fixed = "N/A"},
    {"disk", 'd', "TMP_DISK", 0, .fixed = "0"},
    {"nodes", 'D', "NODES", 0, N_NODES},
    {"reason", 'E', "REASON", 0, REASON},
    {"freemem", 'e', "FREE_MEM", 0, .fixed = "N/A"},
    {"groups", 'g', "GROUPS", 0, .fixed = "all"},
    {"gres", 'G', "GRES", 0, GRES},
    {"oversubscribe", 'h', "OVERSUBSCRIBE", 0, .fixed = "NO"},
    {"time", 'l', "TIMELIMIT", 0, .fixed = "infinite"},
    {"defaulttime", 'L', "DEFAULTTIME", 0, .fixed = "(null)"},
    {"memory", 'm', "MEMORY", 0, MEMORY},
    {"preemptmode", 'M', "PREEMPT_MODE", 0, .fixed = "REQUEUE"},
    {"nodelist", 'N', "NODELIST", 0, NODES},
    {"nodehost", 'n', "HOSTNAMES", 0, NODES},
    {"nodeaddr", 'o', "NODE_ADDR", 0, ADDRESS},
    {"partition", 'P', "PARTITION", 0, POOL},
    {"partitionname", 'R', "PARTITION", 0, POOL_BARE},
    {"root", 'r', "ROOT", 0, .fixed = "no"},
    {"size", 's', "JOB_SIZE", 0, .fixed = "1-infinite"},
    {"statecompact", 't', "STATE", 0, STATE},
    {"statelong", 'T', "STATE", 0, STATE_LONG},
    {"nodeaiot", 'F', "NODES(A/I/O/T)", 0, NODES_AIOT},
    {"user", 'u', "USER", 0, .fixed = "(null)"},
    {"version", 'v', "VERSION", 0, VERSION},
    {"weight", 'w', "WEIGHT", 0, .fixed = "1"},
    {"cores", 'Y', "CORES", 0, CPUS},
    {"sockets", 'X', "SOCKETS", 0, .fixed = "1"},
    {"threads", 'Z', "THREADS", 0, .fixed = "1"},
    {"socketcorethread", 'z', "S:C:T", 0, SOCKETS},
    {NULL, 0, NULL, 0, 0},
};

enum { VAL_JSON = 300, VAL_HELP, VAL_IGNORED };

static const struct option options[] = {
    {"Format", required_argument, NULL, 'O'},
    {"all", no_argument, NULL, VAL_IGNORED},
    {"clusters", required_argument, NULL, 'M'},
    {"dead", no_argument, NULL, 'd'},
    {"exact", no_argument, NULL, VAL_IGNORED},
    {"format", required_argument, NULL, 'o'},
    {"help", no_argument, NULL, VAL_HELP},
    {"hide", no_argument, NULL, VAL_IGNORED},
    {"iterate", required_argument, NULL, 'i'},
    {"json", no_argument, NULL, VAL_JSON},
    {"list-reasons", no_argument, NULL, 'R'},
    {"long", no_argument, NULL, 'l'},
    {"Node", no_argument, NULL, 'N'},
    {"nodes", required_argument, NULL, 'n'},
    {"noheader", no_argument, NULL, 'h'},
    {"partition", required_argument, NULL, 'p'},
    {"reservation", no_argument, NULL, 'T'},
    {"responding", no_argument, NULL, 'r'},
    {"states", required_argument, NULL, 't'},
    {"summarize", no_argument, NULL, 's'},
    {"usage", no_argument, NULL, VAL_HELP},
    {"verbose", no_argument, NULL, 'v'},
    {"version", no_argument, NULL, 'V'},
    {NULL, 0, NULL, 0},
};
const struct option *const sinfo_options = options;

/* One line of the output: nodes in one state, of one pool if the format shows pools. */
struct group {
    const char *pool;
    const char *state; /* Slurm's long state, lower case; with "~": powered down */
    struct buf nodes;
    int64_t n, cpus, memory_mib; /* cpus, memory: per node, the minimum */
    int64_t cpus_used, cpus_all, n_used, n_idle, n_other, cpus_idle, cpus_other;
    bool is_default, varies;
    const json_t *node; /* the first */
};

struct sinfo {
    const char *letters, *names, *pools, *states, *nodes;
    bool no_header, by_node, long_form, summary, json, dead, responding, reasons;
    struct slurm_format format;
    bool groups_states; /* the format shows something that differs between states */
    bool groups_pools;  /* ... or between pools */
    struct group *groups;
    size_t n_groups;
};

static const char *node_state(const json_t *node, int64_t used)
{
    const char *state = cli_text(node, "state");
    int64_t cpus = cli_int(node, "cpus", 0);
    if (str_eq(state, "lost"))
        return "down*";
    if (str_eq(state, "draining"))
        return used > 0 ? "draining" : "drained";
    if (str_eq(state, "noticed"))
        return "draining";
    if (!str_eq(state, "up"))
        return "down";
    return used == 0 ? "idle" : used < cpus ? "mixed" : "allocated";
}

static const char *compact(const char *state)
{
    static const char *const names[][2] = {
        {"allocated", "alloc"}, {"mixed", "mix"}, {"draining", "drng"}, {"drained", "drain"}};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (str_eq(names[i][0], state))
            return names[i][1];
    return state;
}

/* The resources of the group's first node. */
static void add_gres(struct buf *out, const struct group *g)
{
    size_t before = out->len;
    if (g->node)
        slurm_gres(g->node, "", out);
    if (out->len == before)
        buf_adds(out, "(null)");
}

static void add_features(struct buf *out, const struct group *g)
{
    size_t before = out->len;
    cli_words(json_object_get(g->node, "features"), out);
    if (out->len == before)
        buf_adds(out, "(null)");
}

static const char *why(const struct group *g)
{
    const char *notice = g->node ? cli_text(g->node, "notice") : "-";
    if (!str_eq(notice, "-"))
        return notice;
    return str_starts(g->state, "dr")     ? "drained"
           : str_starts(g->state, "down") ? "Not responding"
                                          : "none";
}

static void value(const void *row, int what, struct buf *out)
{
    const struct group *g = row;
    switch ((enum value)what) {
    case POOL:
        buf_printf(out, "%s%s", g->pool, g->is_default ? "*" : "");
        return;
    case POOL_BARE:
        buf_adds(out, g->pool);
        return;
    case N_NODES:
        buf_printf(out, "%lld", (long long)g->n);
        return;
    case STATE:
        buf_adds(out, compact(g->state));
        return;
    case STATE_LONG:
        buf_adds(out, g->state);
        return;
    case NODES:
        buf_adds(out, buf_str(&g->nodes));
        return;
    case CPUS:
        buf_printf(out, "%lld%s", (long long)g->cpus, g->varies ? "+" : "");
        return;
    case CPUS_AIOT:
        buf_printf(out, "%lld/%lld/%lld/%lld", (long long)g->cpus_used, (long long)g->cpus_idle,
            (long long)g->cpus_other, (long long)g->cpus_all);
        return;
    case NODES_AIOT:
        buf_printf(out, "%lld/%lld/%lld/%lld", (long long)g->n_used, (long long)g->n_idle,
            (long long)g->n_other, (long long)g->n);
        return;
    case MEMORY:
        buf_printf(out, "%lld%s", (long long)g->memory_mib, g->varies ? "+" : "");
        return;
    case GRES:
        add_gres(out, g);
        return;
    case FEATURES:
        add_features(out, g);
        return;
    case REASON:
        buf_adds(out, why(g));
        return;
    case ADDRESS:
        buf_adds(out, g->node ? cli_text(g->node, "address") : "");
        return;
    case VERSION:
        buf_adds(out, g->node ? cli_text(g->node, "version") : "");
        return;
    case SOCKETS:
        buf_printf(out, "1:%lld:1", (long long)g->cpus);
        return;
    }
}

/* ---- gathering ---- */

static struct group *find_group(
    struct sinfo *s, const char *pool, const char *state, const json_t *node)
{
    for (size_t i = 0; i < s->n_groups && !(s->by_node && node); i++) {
        struct group *g = &s->groups[i];
        if ((!s->groups_pools || str_eq(g->pool, pool)) &&
            (!s->groups_states || str_eq(g->state, state) || g->n == 0))
            return g;
    }
    s->groups = mem_resize(s->groups, s->n_groups + 1, sizeof(*s->groups));
    struct group *g = &s->groups[s->n_groups++];
    *g = (struct group){.pool = pool, .state = state};
    return g;
}

static bool has_state(const struct sinfo *s, const char *state)
{
    char bare[16];
    str_copy(bare, sizeof(bare), state);
    bare[strcspn(bare, "*~")] = '\0';
    if (s->dead && !str_starts(state, "down"))
        return false;
    if (s->responding && str_ends(state, "*"))
        return false;
    return !s->states || slurm_list_has(s->states, state) || slurm_list_has(s->states, bare) ||
           slurm_list_has(s->states, compact(bare)) || slurm_list_has(s->states, "all") ||
           (slurm_list_has(s->states, "drain") && str_starts(state, "dr"));
}

static void add_node(
    struct sinfo *s, const json_t *node, const char *pool, int64_t used, bool is_default)
{
    const char *state = node_state(node, used), *name = cli_text(node, "name");
    int64_t cpus = cli_int(node, "cpus", 0), mib = cli_int(node, "memory_mib", 0);
    if (!has_state(s, state) || !slurm_hosts_intersect(s->nodes, name))
        return;
    struct group *g = find_group(s, pool, state, node);
    bool works = str_eq(state, "idle") || str_eq(state, "mixed") || str_eq(state, "allocated");
    g->varies = g->n > 0 && (g->varies || g->cpus != cpus || g->memory_mib != mib);
    g->cpus = g->n == 0 || cpus < g->cpus ? cpus : g->cpus;
    g->memory_mib = g->n == 0 || mib < g->memory_mib ? mib : g->memory_mib;
    g->node = g->n == 0 ? node : g->node;
    g->state = g->n == 0 ? state : g->state;
    g->n++;
    g->is_default = is_default;
    g->cpus_all += cpus;
    g->cpus_used += works ? used : 0;
    g->cpus_idle += works && cpus > used ? cpus - used : 0;
    g->cpus_other += works ? 0 : cpus;
    g->n_used += works && used > 0;
    g->n_idle += works && used == 0;
    g->n_other += !works;
    buf_printf(&g->nodes, "%s%s", g->nodes.len ? "," : "", name);
}

/* Adds machines that may still be launched. */
static void add_dormant(struct sinfo *s, const json_t *pool, int64_t live, bool is_default)
{
    int64_t left = cli_int(pool, "max_nodes", 0) - live;
    if (left <= 0 || s->by_node || s->nodes || !has_state(s, "idle~"))
        return;
    struct group *g = find_group(s, cli_text(pool, "name"), "idle~", NULL);
    g->state = g->n == 0 ? "idle~" : g->state;
    g->n += left;
    g->n_idle += left;
    g->is_default = is_default;
}

static void gather(struct sinfo *s, const json_t *pools, const json_t *nodes)
{
    size_t i, k;
    const json_t *pool, *node;
    bool only = json_array_size(pools) == 1;
    json_array_foreach(pools, i, pool)
    {
        int64_t live = 0;
        size_t before = s->n_groups;
        const char *name = cli_text(pool, "name");
        if (!slurm_list_has(s->pools, name))
            continue;
        json_array_foreach(nodes, k, node)
        {
            if (!str_eq(cli_text(node, "pool"), name))
                continue;
            int64_t cpus = cli_int(node, "cpus", 0);
            add_node(s, node, name, cpus - cli_int(node, "cpus_free", cpus), only);
            live++;
        }
        add_dormant(s, pool, live, only);
        if (s->n_groups == before && (s->groups_pools || before == 0) && !s->states && !s->nodes &&
            !s->by_node && !s->dead)
            *find_group(s, name, "n/a", NULL) =
                (struct group){.pool = name, .state = "n/a", .is_default = only};
    }
}

/* Folds the names of each line's nodes: n1,n2 becomes n[1-2]. */
static void fold(struct sinfo *s)
{
    for (size_t i = 0; i < s->n_groups; i++) {
        struct buf folded = {0};
        slurm_hosts_fold(buf_str(&s->groups[i].nodes), &folded);
        buf_deinit(&s->groups[i].nodes);
        s->groups[i].nodes = folded;
    }
}

/* ---- the program ---- */

static json_t *node_json(const struct group *g)
{
    json_t *o = json_object();
    json_object_set_new(o, "name", json_text(buf_str(&g->nodes)));
    json_object_set_new(o, "partitions", json_pack("[s]", g->pool));
    json_object_set_new(o, "state", json_string(g->state));
    json_object_set_new(o, "cpus", json_integer(g->cpus));
    json_object_set_new(o, "alloc_cpus", json_integer(g->cpus_used));
    json_object_set_new(o, "real_memory", json_integer(g->memory_mib));
    struct buf words = {0};
    slurm_gres(g->node, "", &words);
    json_object_set_new(o, "gres", json_text(buf_str(&words)));
    buf_clear(&words);
    cli_words(json_object_get(g->node, "features"), &words);
    json_object_set_new(o, "features", json_text(buf_str(&words)));
    buf_deinit(&words);
    return o;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(
        buf_str(&((const struct group *)a)->nodes), buf_str(&((const struct group *)b)->nodes));
}

static int max_width(const struct slurm_piece *p, size_t len)
{
    size_t title = strlen(p->field->title);
    len = len < title ? title : len;
    return p->width > 0 && (size_t)p->width < len
               ? p->width
               : (int)(len > SLURM_WIDTH_MAX ? SLURM_WIDTH_MAX : len);
}

static void print(struct sinfo *s)
{
    struct buf out = {0};
    json_t *list = json_array();
    if (s->by_node && s->n_groups > 1)
        qsort(s->groups, s->n_groups, sizeof(*s->groups), by_name);
    /* as wide as the longest name, like Slurm */
    for (size_t i = 0; i < s->format.n && s->by_node && !s->letters && !s->names; i++)
        for (size_t k = 0; k < s->n_groups && s->format.pieces[i].field &&
                           s->format.pieces[i].field->what == NODES;
             k++)
            s->format.pieces[i].width = max_width(&s->format.pieces[i], s->groups[k].nodes.len);
    if (!s->no_header)
        slurm_format_line(&s->format, value, NULL, &out);
    for (size_t i = 0; i < s->n_groups; i++) {
        if (s->json)
            json_array_append_new(list, node_json(&s->groups[i]));
        else
            slurm_format_line(&s->format, value, &s->groups[i], &out);
    }
    if (s->json) {
        json_t *o = json_pack("{s:O,s:{s:s}}", "nodes", list, "meta", "name", SLURM_VERSION);
        cli_print_json(o);
        json_decref(o);
    } else {
        fputs(buf_str(&out), stdout);
    }
    json_decref(list);
    buf_deinit(&out);
}

static int read_format(struct sinfo *s)
{
    struct err e;
    const char *from = getenv("SINFO_FORMAT");
    const char *letters = s->letters                   ? s->letters
                          : s->summary                 ? SUMMARY_FORMAT
                          : s->by_node && s->long_form ? NODES_LONG_FORMAT
                          : s->by_node                 ? NODES_FORMAT
                          : s->long_form               ? LONG_FORMAT
                          : from && *from              ? from
                                                       : DEFAULT_FORMAT;
    int rc = s->names ? slurm_format_names(s->names, fields, &s->format, &e)
                      : slurm_format_letters(letters, fields, &s->format, &e);
    for (size_t i = 0; rc == 0 && i < s->format.n; i++) {
        int what = s->format.pieces[i].field ? s->format.pieces[i].field->what : 0;
        s->groups_states =
            s->groups_states || what == STATE || what == STATE_LONG || what == REASON;
        s->groups_pools = s->groups_pools || what == POOL || what == POOL_BARE;
        bool names_host = s->format.pieces[i].field && s->format.pieces[i].field->letter == 'n';
        s->by_node = s->by_node || names_host || what == ADDRESS;
    }
    if (rc != 0)
        slurm_error("sinfo", "%s", e.text);
    return rc == 0 ? CLI_OK : CLI_FAILED;
}

static int show(struct sinfo *s)
{
    struct client *c = NULL;
    struct err e;
    int rc = read_format(s);
    if (rc != CLI_OK)
        return rc;
    if (client_create(&c, &e) != 0) {
        slurm_error("sinfo", "%s", e.text);
        return CLI_FAILED;
    }
    s->by_node = s->by_node || s->json;
    json_t *pools = slurm_get("sinfo", c, "/api/v1/pools"),
           *nodes = pools ? slurm_get("sinfo", c, "/api/v1/nodes") : NULL;
    if (nodes) {
        gather(s, json_object_get(pools, "pools"), json_object_get(nodes, "nodes"));
        fold(s);
        print(s);
    }
    rc = nodes ? CLI_OK : CLI_FAILED;
    json_decref(nodes);
    json_decref(pools);
    client_destroy(c);
    return rc;
}

static void help(void)
{
    puts("Usage: sinfo [-h] [-l] [-N] [-s] [-R] [-d] [-r] [-p PARTITIONS] [-n NODES] [-t STATES] "
         "[-o FORMAT | -O FIELDS] [--json]\n\n"
         "Shows belay's pools and nodes as Slurm's sinfo does.");
    for (const struct slurm_field *f = fields; f->name; f++)
        printf("  %%%c  %s\n", f->letter, f->name);
}

/* Returns -1 to continue; else the exit code. */
static int option(struct sinfo *s, int c)
{
    const char **text = c == 'o'   ? &s->letters
                        : c == 'O' ? &s->names
                        : c == 'p' ? &s->pools
                        : c == 't' ? &s->states
                        : c == 'n' ? &s->nodes
                                   : NULL;
    bool *flag = c == 'h'        ? &s->no_header
                 : c == 'N'      ? &s->by_node
                 : c == 'l'      ? &s->long_form
                 : c == 's'      ? &s->summary
                 : c == 'd'      ? &s->dead
                 : c == 'r'      ? &s->responding
                 : c == 'R'      ? &s->reasons
                 : c == VAL_JSON ? &s->json
                                 : NULL;
    if (c == 'n' && !slurm_is_hosts("sinfo", optarg))
        return CLI_FAILED;
    if (text)
        *text = optarg;
    else if (flag)
        *flag = true;
    else if (c == VAL_HELP || c == 'V')
        c == 'V' ? (void)puts(SLURM_VERSION) : help();
    else if (c == 'i' || c == 'M' || c == 'T')
        slurm_error("sinfo", "%s is not supported",
            c == 'i'   ? "--iterate"
            : c == 'M' ? "--clusters"
                       : "--reservation");
    return c == VAL_HELP || c == 'V'                      ? CLI_OK
           : c == 'i' || c == 'M' || c == 'T' || c == '?' ? CLI_FAILED
                                                          : -1;
}

int sinfo_main(int argc, char **argv)
{
    struct sinfo s = {0};
    int c, rc = -1;
    optind = 0;
    while (
        rc < 0 && (c = getopt_long(argc, argv, "adehi:lM:n:No:O:p:rRst:TvV", options, NULL)) != -1)
        rc = option(&s, c);
    if (rc < 0 && optind < argc) {
        slurm_error("sinfo", "Unrecognized option: %s", argv[optind]);
        rc = CLI_FAILED;
    }
    if (s.reasons && !s.letters) {
        s.letters = "%20E %9u %N";
        s.states = s.states ? s.states : "down,drain,draining,drained";
    }
    if (rc < 0)
        rc = show(&s);
    for (size_t i = 0; i < s.n_groups; i++)
        buf_deinit(&s.groups[i].nodes);
    free(s.groups);
    slurm_format_deinit(&s.format);
    return rc;
}
