/* SPDX-License-Identifier: Apache-2.0
 *
 * Completion of Slurm's names (squeue, sbatch, ...) for belay completion: their options, from the
 * tables that they are read with, and jobs, partitions and nodes, as belay lists them.
 */
#include "cli/slurm/slurm.h"

#include "base/str.h"
#include "cli/flags/directives.h"
#include "cli/flags/foreign.h"
#include <stdio.h>

#define JOBS "belay list -n 1000 -o name"
#define PARTITIONS "belay pools -o name"
#define NODES "belay nodes -o name"

/* What the value of an option may be, in whichever program. */
static const struct {
    const char *option, *letter, *lister; /* letter: where it means the same everywhere, or NULL */
} values[] = {{"partition", "p", PARTITIONS}, {"partitions", NULL, PARTITIONS}, {"job", NULL, JOBS},
    {"jobs", "j", JOBS}, {"jobid", NULL, JOBS}, {"nodelist", "w", NODES}, {"exclude", "x", NODES}};
#define N_VALUES (sizeof(values) / sizeof(values[0]))

/* What the words of a program may be. */
static const struct {
    const char *program, *lister;
} words[] = {{"scancel", JOBS}, {"sstat", JOBS}, {"seff", JOBS}};
#define N_WORDS (sizeof(words) / sizeof(words[0]))

#define SCONTROL_VERBS "hold ping release requeue show update"
#define SCONTROL_OBJECTS "config hostlist hostnames job node partition"

typedef void (*option_fn)(const struct slurm_program *p, const char *name);

/* Options of sbatch and salloc that are no flags of the job. */
static const char *const own[] = {"help", "quiet", "version", "wait", "wrap"};
#define N_OWN (sizeof(own) / sizeof(own[0]))

static bool is_own(const char *name)
{
    size_t i = 0;
    while (i < N_OWN && !str_eq(own[i], name))
        i++;
    return i < N_OWN;
}

/* Of sbatch and salloc the flags of a job, and those that are ignored. */
static void each_option(const struct slurm_program *p, option_fn fn)
{
    for (const struct option *o = p->options ? *p->options : NULL; o && o->name; o++)
        fn(p, o->name);
    if (p->options)
        return;
    for (const struct job_attribute *a = NULL; (a = directives_next(a));)
        if (!(a->masks & JOB_NOT_SLURM))
            fn(p, a->flag);
    for (const struct foreign *f = foreign_flags; f->name; f++)
        if (f->kind != FOREIGN_REFUSED && !is_own(f->name) && !job_attribute_by_flag(f->name))
            fn(p, f->name);
    for (size_t i = 0; i < N_OWN; i++)
        if (!job_attribute_by_flag(own[i]))
            fn(p, own[i]);
}

static const char *words_of(const struct slurm_program *p)
{
    for (size_t i = 0; i < N_WORDS; i++)
        if (str_eq(words[i].program, p->name))
            return words[i].lister;
    return NULL;
}

static const char *value_of(const char *option)
{
    for (size_t i = 0; i < N_VALUES; i++)
        if (str_eq(values[i].option, option))
            return values[i].lister;
    return NULL;
}

static void print_option(const struct slurm_program *p, const char *name)
{
    (void)p;
    printf(" --%s", name);
}

/* "    -p|--partition) WHAT$(belay pools -o name)END", for each option with such values. */
static void print_values(const char *what, const char *end)
{
    for (size_t i = 0; i < N_VALUES; i++) {
        printf("    ");
        if (values[i].letter)
            printf("-%s|", values[i].letter);
        printf("--%s) %s$(%s 2>/dev/null)%s ;;\n", values[i].option, what, values[i].lister, end);
    }
}

/* ---- bash ---- */

void slurm_completion_names(void)
{
    for (const struct slurm_program *p = slurm_programs; p->name; p++)
        printf(" %s", p->name);
}

void slurm_completion_bash(void)
{
    printf("_belay_slurm()\n{\n"
           "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
           "    local program=${COMP_WORDS[0]##*/} options=\"\" words=\"\"\n"
           "    if [ \"$cur\" = = ]; then\n"
           "        cur=\"\"\n"
           "    elif [ \"$prev\" = = ]; then\n"
           "        prev=${COMP_WORDS[COMP_CWORD - 2]}\n"
           "    fi\n"
           "    case \"$program\" in\n");
    for (const struct slurm_program *p = slurm_programs; p->name; p++) {
        printf("    %s) options=\"", p->name);
        each_option(p, print_option);
        printf("\" ;;\n");
    }
    printf("    esac\n"
           "    case \"$prev\" in\n");
    print_values("words=\"", "\"");
    printf("    *) case \"$cur\" in\n"
           "        -*) words=$options ;;\n"
           "        *) case \"$program $prev\" in\n"
           "            *scontrol) words=\"" SCONTROL_VERBS "\" ;;\n"
           "            \"scontrol show\") words=\"" SCONTROL_OBJECTS "\" ;;\n"
           "            \"scontrol hold\"|\"scontrol release\"|\"scontrol requeue\"|\"scontrol "
           "job\")\n"
           "                words=\"$(" JOBS " 2>/dev/null)\" ;;\n"
           "            \"scontrol partition\") words=\"$(" PARTITIONS " 2>/dev/null)\" ;;\n"
           "            \"scontrol node\") words=\"$(" NODES " 2>/dev/null)\" ;;\n");
    for (const struct slurm_program *p = slurm_programs; p->name; p++)
        if (words_of(p))
            printf("            \"%s \"*) words=\"$(%s 2>/dev/null)\" ;;\n", p->name, words_of(p));
    printf("            esac ;;\n"
           "        esac ;;\n"
           "    esac\n"
           "    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
           "}\n"
           "complete -o bashdefault -o default -F _belay_slurm");
    slurm_completion_names();
    putchar('\n');
}

/* ---- zsh ---- */

void slurm_completion_zsh(void)
{
    printf("_belay_slurm()\n{\n"
           "    local -a options\n"
           "    case $service in\n");
    for (const struct slurm_program *p = slurm_programs; p->name; p++) {
        printf("    %s) options=(", p->name);
        each_option(p, print_option);
        printf(") ;;\n");
    }
    printf("    esac\n"
           "    case $words[CURRENT-1] in\n");
    print_values("compadd -- ", "; return");
    printf("    esac\n"
           "    if [[ $words[CURRENT] = -* ]]; then\n"
           "        compadd -- $options\n"
           "        return\n"
           "    fi\n"
           "    case $service in\n"
           "    scontrol)\n"
           "        case $words[CURRENT-1] in\n"
           "        scontrol) compadd -- " SCONTROL_VERBS " ;;\n"
           "        show) compadd -- " SCONTROL_OBJECTS " ;;\n"
           "        partition) compadd -- $(" PARTITIONS " 2>/dev/null) ;;\n"
           "        node) compadd -- $(" NODES " 2>/dev/null) ;;\n"
           "        *) compadd -- $(" JOBS " 2>/dev/null) ;;\n"
           "        esac ;;\n");
    for (size_t i = 0; i < N_WORDS; i++)
        printf("    %s) compadd -- $(%s 2>/dev/null) ;;\n", words[i].program, words[i].lister);
    printf("    *) _files ;;\n"
           "    esac\n"
           "}\n");
}

/* ---- fish ---- */

static void print_fish_option(const struct slurm_program *p, const char *name)
{
    printf("complete -c %s -l %s", p->name, name);
    if (value_of(name))
        printf(" -x -a '(%s 2>/dev/null)'", value_of(name));
    putchar('\n');
}

void slurm_completion_fish(void)
{
    for (const struct slurm_program *p = slurm_programs; p->name; p++) {
        each_option(p, print_fish_option);
        if (words_of(p))
            printf("complete -c %s -f -a '(%s 2>/dev/null)'\n", p->name, words_of(p));
    }
    printf("complete -c scontrol -f -a '" SCONTROL_VERBS "'\n"
           "complete -c scontrol -n '__fish_seen_subcommand_from hold release requeue job' -f -a "
           "'(" JOBS " 2>/dev/null)'\n"
           "complete -c scontrol -n '__fish_seen_subcommand_from show' -f -a '" SCONTROL_OBJECTS
           "'\n");
}
