/* SPDX-License-Identifier: Apache-2.0
 *
 * sshare: teams as accounts, with their shares and use. FairShare is the factor of Slurm's classic
 * formula, 2^(-use/share); belay orders its queue by its own (belay shares).
 */
#include "cli/slurm/slurm_programs.h"

#include "base/str.h"
#include "cli/slurm/slurm.h"
#include <math.h>
#include <pwd.h>
#include <stdio.h>
#include <unistd.h>

enum {
    SHARE_ACCOUNT = 1,
    SHARE_USER,
    SHARE_RAW,
    SHARE_NORM,
    SHARE_USAGE,
    SHARE_PART,
    SHARE_FACTOR
};

static const struct slurm_field fields[] = {
    {"Account", 0, "Account", -20, SHARE_ACCOUNT},
    {"EffectvUsage", 0, "EffectvUsage", 13, SHARE_PART},
    {"FairShare", 0, "FairShare", 10, SHARE_FACTOR},
    {"NormShares", 0, "NormShares", 11, SHARE_NORM},
    {"RawShares", 0, "RawShares", 10, SHARE_RAW},
    {"RawUsage", 0, "RawUsage", 11, SHARE_USAGE},
    {"User", 0, "User", 10, SHARE_USER},
    {NULL, 0, NULL, 0, 0},
};

#define DEFAULT_FORMAT "account,user,rawshares,normshares,rawusage,effectvusage,fairshare"

/* A line: a team, or a user of it. */
struct share {
    const char *team, *user; /* user "": the team */
    int64_t shares;
    double norm, cpu_hours, part;
};

struct sshare {
    struct slurm_format format;
    struct buf users, accounts; /* of -u and -A, separated by commas */
    struct buf out;
    const char *names;
    enum { ALIGNED, BARS, BARS_TRAILING } style;
    bool no_header, all, users_only;
};

static void add_value(const void *row, int what, struct buf *out)
{
    const struct share *s = row;
    switch (what) {
    case SHARE_ACCOUNT:
        buf_printf(out, "%s%s", s->user[0] ? " " : "", s->team);
        return;
    case SHARE_USER:
        buf_adds(out, s->user);
        return;
    case SHARE_RAW:
        buf_printf(out, "%lld", (long long)s->shares);
        return;
    case SHARE_NORM:
        buf_printf(out, "%.6f", s->norm);
        return;
    case SHARE_USAGE:
        buf_printf(out, "%.0f", s->cpu_hours * 3600);
        return;
    case SHARE_PART:
        buf_printf(out, "%.6f", s->part);
        return;
    default: /* SHARE_FACTOR */
        buf_printf(out, "%.6f", s->norm > 0 ? exp2(-s->part / s->norm) : 0.0);
        return;
    }
}

static void add_line(struct sshare *s, const struct share *row)
{
    if (s->style == ALIGNED)
        slurm_format_line(&s->format, add_value, row, &s->out);
    else
        slurm_format_plain(&s->format, "|", s->style == BARS_TRAILING, add_value, row, &s->out);
}

static void add_header(struct sshare *s)
{
    if (s->no_header)
        return;
    add_line(s, NULL);
    for (size_t i = 0; s->style == ALIGNED && i < s->format.n; i++) {
        for (int k = 0; k < s->format.pieces[i].width; k++)
            buf_addc(&s->out, '-');
        buf_addc(&s->out, i + 1 < s->format.n ? ' ' : '\n');
    }
}

static double number(const json_t *row, const char *key)
{
    return json_number_value(json_object_get(row, key));
}

static int64_t shares_in_team(const json_t *rows, const char *team)
{
    const json_t *row;
    size_t i;
    int64_t n = 0;
    json_array_foreach(rows, i, row)
    {
        n += str_eq(cli_text(row, "team"), team) ? cli_int(row, "shares", 0) : 0;
    }
    return n;
}

/* The rows are in the order of teams, then users. */
static void add_rows(struct sshare *s, const json_t *rows)
{
    const json_t *row;
    const char *last = NULL;
    size_t i;
    double all = 0;
    json_array_foreach(rows, i, row)
    {
        all += number(row, "cpu_hours");
    }
    json_array_foreach(rows, i, row)
    {
        const char *team = cli_text(row, "team"), *user = cli_text(row, "user");
        int64_t of_team = shares_in_team(rows, team), shares = cli_int(row, "shares", 0);
        double norm = number(row, "share"), used = number(row, "cpu_hours");
        bool is_shown = s->users.len > 0 ? slurm_list_has(buf_str(&s->users), user) : true;
        if (s->accounts.len > 0 && !slurm_list_has(buf_str(&s->accounts), team))
            continue;
        if (!s->users_only && !str_eq(last, team))
            add_line(s, &(struct share){team, "", cli_int(row, "team_shares", 0), norm,
                            number(row, "team_cpu_hours"), number(row, "part")});
        last = team;
        if (is_shown)
            add_line(s, &(struct share){team, user, shares,
                            of_team > 0 ? norm * (double)shares / (double)of_team : 0, used,
                            all > 0 ? used / all : 0});
    }
}

static void add_word(struct buf *list, const char *word)
{
    buf_printf(list, "%s%s", list->len ? "," : "", word);
}

/* Returns -1 to continue; else the exit code. */
static int option(struct sshare *s, int c)
{
    switch (c) {
    case 'a':
        s->all = true;
        return -1;
    case 'A':
        add_word(&s->accounts, optarg);
        return -1;
    case 'u':
        add_word(&s->users, optarg);
        return -1;
    case 'U':
        s->users_only = true;
        return -1;
    case 'o':
        s->names = optarg;
        return -1;
    case 'n':
        s->no_header = true;
        return -1;
    case 'p':
    case 'P':
        s->style = c == 'P' ? BARS : BARS_TRAILING;
        return -1;
    case 'h':
        puts("Usage: sshare [-a | -u USERS] [-A ACCOUNTS] [-o FIELDS] [-n] [-p | -P] [-U]\n\n"
             "Shows the shares and the use of belay's teams and users: yours, unless -a or -u is "
             "given.\n"
             "Fields: Account, User, RawShares, NormShares, RawUsage (CPU seconds, which decay), "
             "EffectvUsage, FairShare.");
        return CLI_OK;
    case 'V':
        puts(SLURM_VERSION);
        return CLI_OK;
    case 'M':
        if (slurm_is_this_cluster(optarg))
            return -1;
        slurm_error("sshare", "%s is not supported", optarg);
        return CLI_FAILED;
    case '?':
        return CLI_FAILED;
    default: /* l, v: there is nothing more to show */
        return -1;
    }
}

static int show(struct sshare *s)
{
    struct client *c = NULL;
    struct err e;
    const struct passwd *me = getpwuid(getuid());
    if (!s->all && s->users.len == 0)
        buf_adds(&s->users, me ? me->pw_name : "");
    if (slurm_format_sacct(s->names, fields, &s->format, &e) != 0 || client_create(&c, &e) != 0) {
        slurm_error("sshare", "%s", e.text);
        return CLI_FAILED;
    }
    json_t *v = slurm_get("sshare", c, "/api/v1/shares");
    if (v) {
        add_header(s);
        add_rows(s, json_object_get(v, "shares"));
        fputs(buf_str(&s->out), stdout);
    }
    client_destroy(c);
    int rc = v ? CLI_OK : CLI_FAILED;
    json_decref(v);
    return rc;
}

static const struct option options[] = {
    {"accounts", required_argument, NULL, 'A'},
    {"all", no_argument, NULL, 'a'},
    {"clusters", required_argument, NULL, 'M'},
    {"format", required_argument, NULL, 'o'},
    {"help", no_argument, NULL, 'h'},
    {"long", no_argument, NULL, 'l'},
    {"noheader", no_argument, NULL, 'n'},
    {"parsable", no_argument, NULL, 'p'},
    {"parsable2", no_argument, NULL, 'P'},
    {"users", required_argument, NULL, 'u'},
    {"Users", no_argument, NULL, 'U'},
    {"verbose", no_argument, NULL, 'v'},
    {"version", no_argument, NULL, 'V'},
    {NULL, 0, NULL, 0},
};
const struct option *const sshare_options = options;

int sshare_main(int argc, char **argv)
{
    struct sshare s = {.names = DEFAULT_FORMAT};
    int c, rc = -1;
    optind = 0;
    while (rc < 0 && (c = getopt_long(argc, argv, "aA:hlM:no:pPu:UvV", options, NULL)) != -1)
        rc = option(&s, c);
    if (rc < 0 && optind < argc) {
        slurm_error("sshare", "unexpected word: %s", argv[optind]);
        rc = CLI_FAILED;
    }
    if (rc < 0)
        rc = show(&s);
    slurm_format_deinit(&s.format);
    buf_deinit(&s.users);
    buf_deinit(&s.accounts);
    buf_deinit(&s.out);
    return rc;
}
