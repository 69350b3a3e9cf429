/* SPDX-License-Identifier: Apache-2.0
 *
 * belay: finds the verb and hands over.
 */
#include "cli/cli.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void usage(FILE *f)
{
    fprintf(f, "belay: batch jobs on the cheapest capacity there is, caught when it is taken away\n\n"
               "usage: belay VERB [OPTION...] [ARGUMENT...]\n\n");
    for (size_t i = 0; cli_verbs[i]; i++)
        fprintf(f, "  %-11s %s\n", cli_verbs[i]->name, cli_verbs[i]->summary);
    fprintf(f, "\nbelay VERB --help tells more of one. A first job: belay up; belay submit train.sh; belay logs -f 1\n");
}

static const struct verb *find_verb(const char *name)
{
    for (size_t i = 0; cli_verbs[i]; i++)
        if (str_eq(cli_verbs[i]->name, name))
            return cli_verbs[i];
    return NULL;
}

static int unknown_verb(const char *name)
{
    const char *names[64];
    size_t n = 0;
    while (cli_verbs[n] && n < 63) {
        names[n] = cli_verbs[n]->name;
        n++;
    }
    names[n] = NULL;
    const char *near = str_nearest(name, names);
    if (near)
        cli_error("there is no verb \"%s\"; did you mean \"%s\"?", name, near);
    else
        cli_error("there is no verb \"%s\"; belay --help lists them", name);
    return CLI_USAGE;
}

int cli_parse(const struct verb *v, int argc, const char **argv, bool posix, struct cli_common *common, poptContext *ret_pc,
    const char ***ret_rest, int *ret_n_rest)
{
    static const struct poptOption none[] = {POPT_TABLEEND};
    int help = 0;
    struct poptOption table[] = {
        {NULL, 0, POPT_ARG_INCLUDE_TABLE, (void *)(v->options ? v->options : none), 0, NULL, NULL},
        {"json", 0, POPT_ARG_NONE, &common->json, 0, "print JSON", NULL},
        {"help", 'h', POPT_ARG_NONE, &help, 0, "print this and end", NULL},
        POPT_TABLEEND,
    };
    char *name = mem_printf("belay %s", v->name);
    const char **with_name = mem_array((size_t)argc + 1, sizeof(*with_name));
    memcpy(with_name, argv, (size_t)argc * sizeof(*with_name));
    with_name[0] = name;
    poptContext pc = poptGetContext(name, argc, with_name, table, posix ? POPT_CONTEXT_POSIXMEHARDER : 0);
    poptSetOtherOptionHelp(pc, v->arguments);
    int rc = poptGetNextOpt(pc);
    if (rc < -1) {
        cli_error("%s: %s (belay %s --help lists the options)", poptBadOption(pc, 0), poptStrerror(rc), v->name);
        rc = CLI_USAGE;
    } else if (help) {
        printf("belay %s: %s\n", v->name, v->summary);
        poptPrintHelp(pc, stdout, 0);
        rc = -1;
    } else {
        rc = 0;
    }
    *ret_pc = pc;
    *ret_rest = poptGetArgs(pc);
    *ret_n_rest = 0;
    while (*ret_rest && (*ret_rest)[*ret_n_rest])
        ++*ret_n_rest;
    free(with_name);
    free(name);
    return rc;
}

bool cli_job_id(const char *text, int64_t *ret_id)
{
    struct err e;
    if (text && str_to_i64(text, 1, INT64_MAX, "job", ret_id, &e) == 0)
        return true;
    cli_error("expected a job's number, found \"%s\" (belay list shows them)", text ? text : "nothing");
    return false;
}

int main(int argc, char **argv)
{
    setlocale(LC_ALL, "");
    log_init("belay", LOG_WARN);
    const char *name = argc > 1 ? argv[1] : NULL;
    if (!name || str_eq(name, "--help") || str_eq(name, "-h") || str_eq(name, "help")) {
        usage(name ? stdout : stderr);
        return name ? CLI_OK : CLI_USAGE;
    }
    if (str_eq(name, "--version"))
        name = "version";
    const struct verb *v = find_verb(name);
    return v ? v->run(argc - 1, (const char **)argv + 1) : unknown_verb(name);
}
