/* SPDX-License-Identifier: Apache-2.0
 *
 * srun [OPTION...] COMMAND [ARG...]
 *
 * Inside a job it starts the tasks of a step on the job's nodes (cli/slurm/step.c). With --jobid it
 * starts an srun inside that job, in a session (cli/session.h), which does the same. Elsewhere it
 * submits a job that does it, shows its output as it arrives, and ends with its exit code; an
 * interrupt cancels the job. With --pty the command uses this terminal (cli/interactive.h).
 *
 * salloc [OPTION...] [COMMAND [ARG...]]: the same as srun --pty outside of a job; the default
 * command is a shell.
 */
#include "cli/slurm/slurm_programs.h"

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/interactive.h"
#include "cli/slurm/part.h"
#include "cli/slurm/step_parts.h"
#include "cli/slurm/programs.h"
#include "cli/session.h"
#include "cli/slurm/slurm.h"
#include "cli/slurm/step.h"
#include "cli/submission.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    VAL_HELP = 300,
    VAL_IGNORED,
    VAL_JOB,
    VAL_REFUSED,
    VAL_OVERLAP,
    VAL_JOBID,
    VAL_PTY,
    VAL_PROGRAMS,
    VAL_PROLOG,
    VAL_EPILOG,
    VAL_NONE
};

/* VAL_JOB: a flag of the submitted job, with the flag's own name; ignored inside a job. VAL_NONE:
 * refused, unless its value is "none". */
static const struct option options[] = {
    {"account", required_argument, NULL, 'A'},
    {"accel-bind", required_argument, NULL, VAL_IGNORED},
    {"acctg-freq", required_argument, NULL, VAL_IGNORED},
    {"bb", required_argument, NULL, VAL_REFUSED},
    {"bbf", required_argument, NULL, VAL_REFUSED},
    {"begin", required_argument, NULL, 'b'},
    {"bcast", optional_argument, NULL, VAL_REFUSED},
    {"bcast-exclude", required_argument, NULL, VAL_IGNORED},
    {"chdir", required_argument, NULL, 'D'},
    {"cluster-constraint", required_argument, NULL, VAL_REFUSED},
    {"clusters", required_argument, NULL, VAL_REFUSED},
    {"comment", required_argument, NULL, VAL_IGNORED},
    {"compress", optional_argument, NULL, VAL_IGNORED},
    {"constraint", required_argument, NULL, 'C'},
    {"container", required_argument, NULL, VAL_REFUSED},
    {"contiguous", no_argument, NULL, VAL_JOB},
    {"core-spec", required_argument, NULL, 'S'},
    {"cores-per-socket", required_argument, NULL, VAL_JOB},
    {"cpu-bind", required_argument, NULL, VAL_IGNORED},
    {"cpu-freq", required_argument, NULL, VAL_IGNORED},
    {"cpus-per-gpu", required_argument, NULL, VAL_JOB},
    {"cpus-per-task", required_argument, NULL, 'c'},
    {"deadline", required_argument, NULL, VAL_JOB},
    {"delay-boot", required_argument, NULL, VAL_JOB},
    {"dependency", required_argument, NULL, 'd'},
    {"disable-status", no_argument, NULL, 'X'},
    {"distribution", required_argument, NULL, 'm'},
    {"epilog", required_argument, NULL, VAL_NONE},
    {"error", required_argument, NULL, 'e'},
    {"exact", no_argument, NULL, VAL_IGNORED},
    {"exclude", required_argument, NULL, 'x'},
    {"exclusive", optional_argument, NULL, VAL_JOB},
    {"export", required_argument, NULL, VAL_JOB},
    {"extra-node-info", required_argument, NULL, 'B'},
    {"gid", required_argument, NULL, VAL_REFUSED},
    {"gpu-bind", required_argument, NULL, VAL_IGNORED},
    {"gpu-freq", required_argument, NULL, VAL_IGNORED},
    {"gpus", required_argument, NULL, 'G'},
    {"gpus-per-node", required_argument, NULL, VAL_JOB},
    {"gpus-per-socket", required_argument, NULL, VAL_REFUSED},
    {"gpus-per-task", required_argument, NULL, VAL_JOB},
    {"gres", required_argument, NULL, VAL_JOB},
    {"gres-flags", required_argument, NULL, VAL_IGNORED},
    {"help", no_argument, NULL, VAL_HELP},
    {"het-group", required_argument, NULL, VAL_REFUSED},
    {"hint", required_argument, NULL, VAL_IGNORED},
    {"hold", no_argument, NULL, 'H'},
    {"immediate", optional_argument, NULL, 'I'},
    {"input", required_argument, NULL, 'i'},
    {"job-name", required_argument, NULL, 'J'},
    {"jobid", required_argument, NULL, VAL_JOBID},
    {"kill-on-bad-exit", optional_argument, NULL, 'K'},
    {"label", no_argument, NULL, 'l'},
    {"licenses", required_argument, NULL, 'L'},
    {"mail-type", required_argument, NULL, VAL_JOB},
    {"mail-user", required_argument, NULL, VAL_JOB},
    {"mcs-label", required_argument, NULL, VAL_IGNORED},
    {"mem", required_argument, NULL, VAL_JOB},
    {"mem-bind", required_argument, NULL, VAL_IGNORED},
    {"mem-per-cpu", required_argument, NULL, VAL_JOB},
    {"mem-per-gpu", required_argument, NULL, VAL_JOB},
    {"mincpus", required_argument, NULL, VAL_JOB},
    {"mpi", required_argument, NULL, VAL_IGNORED},
    {"msg-timeout", required_argument, NULL, VAL_IGNORED},
    {"multi-prog", no_argument, NULL, VAL_PROGRAMS},
    {"network", required_argument, NULL, VAL_IGNORED},
    {"nice", optional_argument, NULL, VAL_JOB},
    {"no-allocate", no_argument, NULL, VAL_REFUSED},
    {"no-kill", optional_argument, NULL, 'k'},
    {"nodefile", required_argument, NULL, 'F'},
    {"nodelist", required_argument, NULL, 'w'},
    {"nodes", required_argument, NULL, 'N'},
    {"ntasks", required_argument, NULL, 'n'},
    {"ntasks-per-core", required_argument, NULL, VAL_IGNORED},
    {"ntasks-per-gpu", required_argument, NULL, VAL_JOB},
    {"ntasks-per-node", required_argument, NULL, VAL_JOB},
    {"ntasks-per-socket", required_argument, NULL, VAL_IGNORED},
    {"open-mode", required_argument, NULL, VAL_JOB},
    {"output", required_argument, NULL, 'o'},
    {"overcommit", no_argument, NULL, 'O'},
    {"overlap", no_argument, NULL, VAL_OVERLAP},
    {"oversubscribe", no_argument, NULL, 's'},
    {"partition", required_argument, NULL, 'p'},
    {"power", required_argument, NULL, VAL_IGNORED},
    {"prefer", required_argument, NULL, VAL_JOB},
    {"preserve-env", no_argument, NULL, 'E'},
    {"priority", required_argument, NULL, VAL_JOB},
    {"profile", required_argument, NULL, VAL_IGNORED},
    {"prolog", required_argument, NULL, VAL_NONE},
    {"propagate", optional_argument, NULL, VAL_IGNORED},
    {"pty", optional_argument, NULL, VAL_PTY},
    {"qos", required_argument, NULL, 'q'},
    {"quiet", no_argument, NULL, 'Q'},
    {"quit-on-interrupt", no_argument, NULL, VAL_IGNORED},
    {"reboot", no_argument, NULL, VAL_JOB},
    {"relative", required_argument, NULL, 'r'},
    {"reservation", required_argument, NULL, VAL_REFUSED},
    {"resv-ports", optional_argument, NULL, VAL_IGNORED},
    {"send-libs", optional_argument, NULL, VAL_IGNORED},
    {"signal", required_argument, NULL, VAL_JOB},
    {"slurmd-debug", required_argument, NULL, VAL_IGNORED},
    {"sockets-per-node", required_argument, NULL, VAL_JOB},
    {"spread-job", no_argument, NULL, VAL_JOB},
    {"switches", required_argument, NULL, VAL_JOB},
    {"task-epilog", required_argument, NULL, VAL_EPILOG},
    {"task-prolog", required_argument, NULL, VAL_PROLOG},
    {"threads", required_argument, NULL, 'T'},
    {"threads-per-core", required_argument, NULL, VAL_IGNORED},
    {"time", required_argument, NULL, 't'},
    {"time-min", required_argument, NULL, VAL_JOB},
    {"tmp", required_argument, NULL, VAL_JOB},
    {"uid", required_argument, NULL, VAL_REFUSED},
    {"test-only", no_argument, NULL, VAL_JOB},
    {"thread-spec", required_argument, NULL, VAL_JOB},
    {"unbuffered", no_argument, NULL, 'u'},
    {"usage", no_argument, NULL, VAL_HELP},
    {"use-min-nodes", no_argument, NULL, VAL_JOB},
    {"verbose", no_argument, NULL, 'v'},
    {"version", no_argument, NULL, 'V'},
    {"wait", required_argument, NULL, 'W'},
    {"wckey", required_argument, NULL, VAL_IGNORED},
    {"x11", optional_argument, NULL, VAL_REFUSED},
    {NULL, 0, NULL, 0},
};
const struct option *const srun_options = options;

#define LETTERS "+A:B:b:C:c:D:d:e:EF:G:HhI::i:J:K::k::L:lm:N:n:Oo:p:q:Qr:S:sT:t:uVvW:w:x:X"

enum where { IN_JOB, IN_ANOTHER, NOWHERE };

struct srun {
    struct submission s;
    struct step step;
    enum where where;
    int64_t job;   /* 0 if not given */
    bool shell;    /* the default command is a shell */
    bool programs; /* --multi-prog */
};

static const char *name_of(int c, int index)
{
    if (index >= 0)
        return options[index].name;
    for (const struct option *o = options; o->name; o++)
        if (o->val == c)
            return o->name;
    return "?";
}

static int fail(const struct srun *r, const char *name, const char *text)
{
    slurm_error(r->step.program, "--%s %s", name, text);
    return CLI_FAILED;
}

static int read_count(const struct srun *r, const char *name, int64_t *ret_n)
{
    struct err e;
    if (str_to_i64(optarg, 1, 4096, name, ret_n, &e) == 0)
        return -1;
    slurm_error(r->step.program, "%s", e.text);
    return CLI_FAILED;
}

/* "2", "2-4" */
static int read_nodes(struct step *s, const char *text)
{
    const char *dash = strchr(text, '-');
    char *least = mem_strndup(text, dash ? (size_t)(dash - text) : strlen(text));
    struct err e;
    int rc = str_to_i64(dash ? dash + 1 : text, 1, LAYOUT_NODES_MAX, "nodes", &s->nodes_max, &e);
    if (rc == 0)
        rc = str_to_i64(least, 1, s->nodes_max, "the least number of nodes", &s->nodes_min, &e);
    free(least);
    if (rc == 0)
        return -1;
    slurm_error(s->program, "--nodes: %s", e.text);
    return CLI_FAILED;
}

static int read_relative(struct step *s)
{
    struct err e;
    if (str_to_i64(optarg, 0, LAYOUT_NODES_MAX - 1, "relative", &s->relative, &e) == 0)
        return -1;
    slurm_error(s->program, "%s", e.text);
    return CLI_FAILED;
}

static int refuse(const struct srun *r, const char *name)
{
    static const char *const reasons[][2] = {
        {"bcast", "belay copies no programs to nodes: use a directory that all of them share, or "
                  "--workdir upload of belay submit"},
        {"prolog", "run it before srun, in the script"},
        {"epilog", "run it after srun, in the script"},
        {"het-group", "all nodes of a job are alike"}, {"reservation", "belay has no reservations"},
        {"x11", "belay forwards no displays"},
        {"container",
            "the image of a job's script is given when it is submitted, with --container-image"},
        {"clusters", "there is only one cluster"}, {"no-allocate", "only jobs run on nodes"}};
    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
        if (str_eq(reasons[i][0], name)) {
            slurm_error(r->step.program, "--%s is not supported: %s", name, reasons[i][1]);
            return CLI_FAILED;
        }
    return fail(r, name, "is not supported");
}

/* As in Slurm: an absolute path, so that the directory does not matter. */
static int set_hook(const struct srun *r, const char *name, const char **ret_path)
{
    if (optarg[0] != '/')
        return fail(r, name, "needs the absolute path of a program");
    *ret_path = optarg;
    return -1;
}

/* Flags for tasks: valid inside a job, and outside, where they are passed to the job's own srun.
 * Returns -1 to continue; else the exit code. */
static int task_option(struct srun *r, int c, const char *name)
{
    if (r->shell)
        return fail(r, name, "is not for salloc: give it to srun, in the job");
    if (c != VAL_PROGRAMS)
        return set_hook(r, name, c == VAL_PROLOG ? &r->step.prolog : &r->step.epilog);
    r->programs = true;
    return -1;
}

/* Stores an option of a step that is a text or a switch. False for any other option. */
static bool keep_in_step(struct step *s, int c)
{
    const struct {
        int c;
        const char **text;
        bool *flag;
    } kept[] = {{'o', &s->output, NULL}, {'e', &s->error, NULL}, {'i', &s->input, NULL},
        {'D', &s->dir, NULL}, {'J', &s->name, NULL}, {'w', &s->nodelist, NULL},
        {'x', &s->exclude, NULL}, {'m', &s->distribution, NULL}, {'l', NULL, &s->labels},
        {'Q', NULL, &s->quiet}, {'O', NULL, &s->overlap}, {'s', NULL, &s->overlap},
        {VAL_OVERLAP, NULL, &s->overlap}, {VAL_PTY, NULL, &s->pty}};
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
        if (kept[i].c != c)
            continue;
        if (kept[i].text)
            *kept[i].text = optarg;
        else
            *kept[i].flag = true;
        return true;
    }
    return false;
}

/* Flags valid inside a job. Returns -1 to continue; else the exit code. */
static int step_option(struct srun *r, int c, const char *name)
{
    struct step *s = &r->step;
    if (keep_in_step(s, c))
        return -1;
    switch (c) {
    case 'n':
        return read_count(r, name, &s->tasks);
    case 'c':
        return read_count(r, name, &s->cpus_per_task);
    case 'N':
        return read_nodes(s, optarg);
    case 'r':
        return read_relative(s);
    case 'K':
        s->kill_on_bad_exit = !optarg || !str_eq(optarg, "0");
        return -1;
    case 'd':
    case 'F':
    case 'H':
        return fail(r, name, "is not supported for a step of a job");
    case VAL_JOB:
        if (str_eq(name, "test-only"))
            return fail(r, name, "is not supported for a step of a job");
        if (str_eq(name, "export"))
            s->export = optarg;
        if (str_eq(name, "ntasks-per-node"))
            return read_count(r, name, &s->tasks_per_node);
        return -1; /* the job's allocation is fixed */
    default:
        return -1;
    }
}

static int job_option(struct srun *r, int c, const char *name)
{
    r->step.pty = r->step.pty || c == VAL_PTY;
    if (c > 255 && c != VAL_JOB)
        return -1;
    if (c != VAL_JOB && strchr("lKOsQruvETWImXk", c)) { /* flags of steps only */
        r->step.labels = r->step.labels || c == 'l';
        r->s.quiet = r->s.quiet || c == 'Q';
        return -1;
    }
    if (c == 'n' || c == 'N' || str_eq(name, "ntasks-per-node")) {
        int rc = c == 'n'   ? read_count(r, name, &r->step.tasks)
                 : c == 'N' ? read_nodes(&r->step, optarg)
                            : read_count(r, name, &r->step.tasks_per_node);
        if (rc >= 0)
            return rc;
    }
    submission_add_named(&r->s, name, optarg);
    return -1;
}

static void help(const struct srun *r)
{
    puts(
        r->shell
            ? "Usage: salloc [OPTION...] [COMMAND [ARG...]]\n\n"
              "Submits a job, and runs the command, or a shell, on the first of its nodes, "
              "with this terminal.\n"
            : "Usage: srun [OPTION...] COMMAND [ARG...]\n\n"
              "In a job, or with --jobid in the job of that number: starts the command -n times on "
              "its nodes, within the CPUs of the job.\n"
              "Elsewhere: submits a job that does, shows its output, and ends with its exit code;\n"
              "it takes the options of sbatch that describe the job.\n");
    for (const struct option *o = options; o->name; o++)
        if (o->val != VAL_IGNORED && o->val != VAL_REFUSED && o->val != VAL_NONE)
            printf("  --%s\n", o->name);
}

static int read_options(struct srun *r, int argc, char **argv)
{
    int c, index = -1, rc = -1;
    optind = 0;
    while (rc < 0 && (c = getopt_long(argc, argv, LETTERS, options, &index)) != -1) {
        const char *name = name_of(c, index);
        index = -1;
        if (c == '?')
            return CLI_FAILED;
        if (c == VAL_HELP || c == 'h' || c == 'V') {
            c == 'V' ? (void)puts(SLURM_VERSION) : help(r);
            return CLI_OK;
        }
        if (c == VAL_REFUSED || (c == VAL_NONE && !str_eq(optarg, "none")))
            return refuse(r, name);
        if (c == VAL_PROGRAMS || c == VAL_PROLOG || c == VAL_EPILOG)
            rc = task_option(r, c, name);
        else if (c != VAL_NONE)
            rc = r->where == NOWHERE ? job_option(r, c, name) : step_option(r, c, name);
    }
    if (rc < 0 && optind == argc && !r->shell) {
        slurm_error(r->step.program, "No command given to execute.");
        return CLI_FAILED;
    }
    return rc;
}

/* ---- choosing the job ---- */

/* The value of --jobid; NULL if not given. It decides how the other options are parsed. */
static const char *job_given(int argc, char **argv)
{
    const char *text = NULL;
    int c;
    optind = opterr = 0;
    while ((c = getopt_long(argc, argv, LETTERS, options, NULL)) != -1)
        text = c == VAL_JOBID ? optarg : text;
    opterr = 1;
    return text;
}

static int64_t own_job(const char *variable)
{
    const char *text = getenv(variable);
    return text && getenv("BELAY_CONTROL_DIR") ? slurm_job_number(text) : 0;
}

/* Returns -1 to continue; else the exit code. Inside a job that was not submitted through Slurm's
 * names, which lacks Slurm's variables, --jobid with its own number works too. */
static int find_where(struct srun *r, int argc, char **argv)
{
    const char *given = job_given(argc, argv);
    int64_t own = own_job("SLURM_JOB_ID");
    r->job = given ? slurm_job_number(given) : own;
    if (given && r->job == 0) {
        slurm_error("srun", "--jobid: expected the number of a job, found %.100s", given);
        return CLI_FAILED;
    }
    if (given && own == 0 && own_job("BELAY_JOB_ID") == r->job) {
        setenv("SLURM_JOB_ID", getenv("BELAY_JOB_ID"), 1);
        own = r->job;
    }
    r->where = r->job == 0 ? NOWHERE : r->job == own ? IN_JOB : IN_ANOTHER;
    return -1;
}

/* ---- in another job ---- */

/* Runs the same command line in the job: an srun there has the job's nodes and knows its other
 * steps. */
static int enter(const struct srun *r, int argc, char **argv)
{
    char *flag = mem_printf("--jobid=%lld", (long long)r->job);
    const char **words = mem_array((size_t)argc + 4, sizeof(*words));
    const struct session_request request = {
        .job = r->job, .words = words, .n_words = argc + 3, .tty = r->step.pty};
    struct client *c = NULL;
    struct err e = {0};
    int code = CLI_FAILED;
    words[0] = "belay";
    words[1] = "slurm";
    words[2] = "srun";
    words[3] = flag;
    for (int i = 1; i < argc; i++)
        words[i + 3] = argv[i];
    if (client_create(&c, &e) != 0 || session_run(c, &request, NULL, &code, &e) != 0) {
        slurm_error("srun", "%s", e.text);
        code = CLI_FAILED;
    }
    client_destroy(c);
    free(words);
    free(flag);
    return code;
}

/* ---- outside of a job ---- */

static void add_hook(struct buf *script, const char *flag, const char *path)
{
    if (!path)
        return;
    buf_printf(script, " %s=", flag);
    str_shell_quote(script, path);
}

/* Several tasks, and options of tasks, need an srun inside the job, so belay must be installed on
 * its nodes; a single task does not. */
static void add_srun(const struct srun *r, struct buf *script)
{
    const struct step *s = &r->step;
    bool of_tasks = r->programs || s->prolog || s->epilog || s->labels;
    if (s->tasks <= 1 && s->tasks_per_node <= 1 && s->nodes_max <= 1 && !of_tasks)
        return;
    buf_printf(script, " belay slurm srun%s%s", s->labels ? " -l" : "",
        r->programs ? " --multi-prog" : "");
    add_hook(script, "--task-prolog", s->prolog);
    add_hook(script, "--task-epilog", s->epilog);
}

static int submit(struct srun *r, char **words, int n)
{
    if (r->step.pty && (r->programs || r->step.prolog || r->step.epilog))
        return fail(
            r, "pty", "of a new job takes no --multi-prog, --task-prolog and --task-epilog");
    if (r->step.pty)
        return interactive_run(&r->s, (const char *const *)words, n, true);
    struct buf script = {0};
    struct err e = {0};
    buf_adds(&script, "#!/bin/sh\nexec");
    add_srun(r, &script);
    for (int i = 0; i < n; i++) {
        buf_addc(&script, ' ');
        str_shell_quote(&script, words[i]);
    }
    buf_addc(&script, '\n');
    const char *slash = strrchr(words[0], '/');
    int rc = submission_build(&r->s, "(command)", buf_str(&script), script.len,
        slash ? slash + 1 : words[0], NULL, 0, &e);
    buf_deinit(&script);
    if (rc != 0) {
        submission_error(&r->s, e.text);
        return CLI_FAILED;
    }
    return submission_send(&r->s);
}

/* ---- in a job ---- */

static int run_step(struct srun *r, char **words)
{
    struct buf text = {0};
    struct err e;
    if (r->programs && fs_read(words[0], PROGRAMS_BYTES_MAX, &text, &e) != 0) {
        slurm_error("srun", "--multi-prog: %s", e.text);
        return CLI_FAILED;
    }
    if (text.len > 0 && memchr(text.data, '\0', text.len)) {
        slurm_error("srun", "--multi-prog: %s contains a NUL byte: expected a text file", words[0]);
        buf_deinit(&text);
        return CLI_FAILED;
    }
    r->step.programs = r->programs ? buf_str(&text) : NULL;
    int code = step_run(&r->step, words);
    buf_deinit(&text);
    return code;
}

int srun_main(int argc, char **argv)
{
    struct srun r = {.step = {.program = "srun"}};
    if (argc == 2 && str_eq(argv[1], PART_FLAG))
        return part_main();
    submission_init(&r.s);
    r.s.slurm = "srun";
    r.s.wait = r.s.follow = r.s.cancel_on_interrupt = true;
    int code = find_where(&r, argc, argv);
    if (code < 0)
        code = read_options(&r, argc, argv);
    if (code < 0)
        code = r.where == IN_JOB       ? run_step(&r, argv + optind)
               : r.where == IN_ANOTHER ? enter(&r, argc, argv)
                                       : submit(&r, argv + optind, argc - optind);
    submission_deinit(&r.s);
    return code;
}

int salloc_main(int argc, char **argv)
{
    static const char *const shell[] = {"sh", "-c", "exec \"${SHELL:-/bin/sh}\""};
    struct srun r = {.step = {.program = "salloc"}, .where = NOWHERE, .shell = true};
    submission_init(&r.s);
    r.s.slurm = "salloc";
    submission_add_named(&r.s, "job-name", "interactive");
    int code = read_options(&r, argc, argv);
    bool has_command = optind < argc, tty = isatty(STDIN_FILENO);
    if (code < 0)
        code = has_command
                   ? interactive_run(&r.s, (const char *const *)(argv + optind), argc - optind, tty)
                   : interactive_run(&r.s, shell, 3, tty);
    submission_deinit(&r.s);
    return code;
}
