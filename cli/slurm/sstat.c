/* SPDX-License-Identifier: Apache-2.0
 *
 * sstat: what running jobs use. belay keeps no accounts of steps: each job has one line.
 */
#include "cli/slurm/slurm_programs.h"

#include "base/str.h"
#include "cli/slurm/slurm.h"
#include <stdio.h>

#define DEFAULT_FORMAT "jobid,maxrss,maxrssnode,maxrsstask,averss,avecpu,ntasks"

static const struct slurm_field fields[] = {
    {"AveCPU", 0, "AveCPU", 10, JOB_AVE_CPU},
    {"AveCPUFreq", 0, "AveCPUFreq", 10, .fixed = ""},
    {"AveDiskRead", 0, "AveDiskRead", 12, .fixed = ""},
    {"AveDiskWrite", 0, "AveDiskWrite", 12, .fixed = ""},
    {"AvePages", 0, "AvePages", 10, .fixed = ""},
    {"AveRSS", 0, "AveRSS", 10, JOB_AVE_RSS},
    {"AveVMSize", 0, "AveVMSize", 10, .fixed = ""},
    {"ConsumedEnergy", 0, "ConsumedEnergy", 14, .fixed = ""},
    {"JobID", 0, "JobID", -12, JOB_ID},
    {"MaxDiskRead", 0, "MaxDiskRead", 12, .fixed = ""},
    {"MaxDiskWrite", 0, "MaxDiskWrite", 12, .fixed = ""},
    {"MaxPages", 0, "MaxPages", 8, .fixed = ""},
    {"MaxRSS", 0, "MaxRSS", 10, JOB_MAX_RSS},
    {"MaxRSSNode", 0, "MaxRSSNode", 10, JOB_MAX_RSS_NODE},
    {"MaxRSSTask", 0, "MaxRSSTask", 10, JOB_MAX_RSS_TASK},
    {"MaxVMSize", 0, "MaxVMSize", 10, .fixed = ""},
    {"MinCPU", 0, "MinCPU", 10, .fixed = ""},
    {"Nodelist", 0, "Nodelist", 20, JOB_NODES},
    {"NTasks", 0, "NTasks", 8, JOB_TASKS},
    {"TotalCPU", 0, "TotalCPU", 10, JOB_TOTAL_CPU},
    {NULL, 0, NULL, 0, 0},
};

static const struct option options[] = {
    {"allsteps", no_argument, NULL, 'a'},
    {"format", required_argument, NULL, 'o'},
    {"fields", required_argument, NULL, 'o'},
    {"help", no_argument, NULL, 'h'},
    {"helpformat", no_argument, NULL, 'e'},
    {"jobs", required_argument, NULL, 'j'},
    {"noconvert", no_argument, NULL, 'v'},
    {"noheader", no_argument, NULL, 'n'},
    {"parsable", no_argument, NULL, 'p'},
    {"parsable2", no_argument, NULL, 'P'},
    {"verbose", no_argument, NULL, 'v'},
    {"version", no_argument, NULL, 'V'},
    {NULL, 0, NULL, 0},
};
const struct option *const sstat_options = options;

struct sstat {
    struct slurm_format format;
    struct buf jobs; /* of all -j */
    struct buf out;
    const char *names;
    enum { ALIGNED, BARS, BARS_TRAILING } style;
    bool no_header;
    int shown;
};

static void add_line(struct sstat *s, const struct slurm_job *j)
{
    if (s->style == ALIGNED)
        slurm_format_line(&s->format, slurm_job_value, j, &s->out);
    else
        slurm_format_plain(&s->format, "|", s->style == BARS_TRAILING, slurm_job_value, j, &s->out);
}

static void add_header(struct sstat *s)
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

static void on_job(void *ctx, const struct slurm_job *j)
{
    struct sstat *s = ctx;
    if (!str_eq(slurm_job_state(j)->name, "RUNNING"))
        return;
    s->shown++;
    add_line(s, j);
}

static void list_fields(void)
{
    int column = 0;
    for (const struct slurm_field *f = fields; f->name; f++)
        printf("%-20s%s", f->name, ++column % 4 == 0 || !f[1].name ? "\n" : "");
}

/* Returns -1 to continue; else the exit code. */
static int option(struct sstat *s, int c)
{
    switch (c) {
    case 'j':
        buf_printf(&s->jobs, "%s%s", s->jobs.len ? "," : "", optarg);
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
    case 'e':
        list_fields();
        return CLI_OK;
    case 'h':
        puts("Usage: sstat -j JOBS [-o FIELDS] [-n] [-p | -P] [-e]\n\n"
             "Shows what running jobs of belay use, one line each.\nFields:");
        list_fields();
        return CLI_OK;
    case 'V':
        puts(SLURM_VERSION);
        return CLI_OK;
    case '?':
        return CLI_FAILED;
    default: /* a, i, v: a job has one line */
        return -1;
    }
}

static int show(struct sstat *s)
{
    struct slurm_query q = {.program = "sstat",
        .jobs = buf_str(&s->jobs),
        .wants_nodes = true,
        .wants_detail = true,
        .ended_after = WALL_NONE,
        .submitted_until = WALL_NONE};
    struct client *c = NULL;
    struct err e;
    if (slurm_format_sacct(s->names, fields, &s->format, &e) != 0 || client_create(&c, &e) != 0) {
        slurm_error("sstat", "%s", e.text);
        return CLI_FAILED;
    }
    add_header(s);
    int rc = slurm_each_job(c, &q, false, on_job, s);
    client_destroy(c);
    fputs(buf_str(&s->out), stdout);
    if (rc != CLI_OK || s->shown > 0)
        return rc;
    slurm_error("sstat", "no running job: %s", buf_str(&s->jobs));
    return CLI_FAILED;
}

int sstat_main(int argc, char **argv)
{
    struct sstat s = {.names = DEFAULT_FORMAT};
    int c, rc = -1;
    optind = 0;
    while (rc < 0 && (c = getopt_long(argc, argv, "aehij:no:pPvV", options, NULL)) != -1)
        rc = option(&s, c);
    if (rc < 0 && (optind < argc || s.jobs.len == 0)) {
        slurm_error("sstat", optind < argc ? "unexpected word: %s" : "expected jobs: sstat -j JOBS",
            optind < argc ? argv[optind] : "");
        rc = CLI_FAILED;
    }
    if (rc < 0)
        rc = show(&s);
    slurm_format_deinit(&s.format);
    buf_deinit(&s.jobs);
    buf_deinit(&s.out);
    return rc;
}
