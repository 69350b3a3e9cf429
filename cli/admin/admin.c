/* SPDX-License-Identifier: Apache-2.0
 *
 * belay admin: the words and options of its actions.
 */
#include "cli/admin/audit_log.h"
#include "cli/admin/backup.h"
#include "cli/admin/doctor.h"
#include "cli/admin/reload.h"
#include "cli/admin/restore.h"
#include "cli/admin/retention.h"

#include "base/mem.h"
#include "base/str.h"
#include "cli/verbs.h"
#include <stdlib.h>

enum {
    VAL_STATE = 1,
    VAL_CONFIG,
    VAL_PASSPHRASE,
    VAL_ENCRYPT_TO,
    VAL_KEY_FILE,
    VAL_SINCE,
    VAL_HEAD,
    VAL_NO_FENCE,
    VAL_DRY_RUN
};

#define BIT(val) (1U << (val))
#define SEALS (BIT(VAL_PASSPHRASE) | BIT(VAL_KEY_FILE))

struct action {
    const char *name;
    const char *word; /* what its one word is; NULL = it takes none */
    bool is_optional; /* the word */
    unsigned takes;   /* BIT(val) of its options */
    int (*run)(const struct admin_options *o, const char *word);
};

static const struct action actions[] = {
    {"backup", "FILE or DIR", false,
        BIT(VAL_STATE) | BIT(VAL_CONFIG) | BIT(VAL_PASSPHRASE) | BIT(VAL_ENCRYPT_TO), admin_backup},
    {"verify", "FILE", false, SEALS, admin_verify},
    {"restore", "FILE", false, BIT(VAL_STATE) | BIT(VAL_NO_FENCE) | SEALS, admin_restore},
    {"audit-log", "verify", true, BIT(VAL_SINCE) | BIT(VAL_HEAD), admin_audit_log},
    {"reload", NULL, true, BIT(VAL_DRY_RUN), admin_reload},
    {"retention", NULL, true, 0, admin_retention},
    {"log-level", "LEVEL", false, 0, admin_log_level},
    {"doctor", NULL, true, BIT(VAL_STATE), admin_doctor},
};
#define N_ACTIONS (sizeof(actions) / sizeof(actions[0]))

static const struct poptOption options[] = {
    {"state", 's', POPT_ARG_STRING, NULL, VAL_STATE,
        "backup, restore, doctor: the state directory (default but for restore: that of belay up, "
        "if there is "
        "one, else /var/lib/belay)",
        "DIR"},
    {"config", 'c', POPT_ARG_STRING, NULL, VAL_CONFIG,
        "backup: the configuration, which is copied too (default: belayd.yaml in the state "
        "directory, else /etc/belay/belayd.yaml)",
        "FILE"},
    {"passphrase-file", 0, POPT_ARG_STRING, NULL, VAL_PASSPHRASE,
        "encrypt or decrypt with the passphrase in the first line of FILE", "FILE"},
    {"encrypt-to", 0, POPT_ARG_STRING, NULL, VAL_ENCRYPT_TO,
        "backup: encrypt for who has the key of this certificate (PEM)", "FILE"},
    {"key-file", 0, POPT_ARG_STRING, NULL, VAL_KEY_FILE,
        "verify, restore: the key of that certificate (PEM)", "FILE"},
    {"since", 0, POPT_ARG_STRING, NULL, VAL_SINCE,
        "audit-log: calls since TIME: 20:44, today, 2026-11-21, or 10m (ago)", "TIME"},
    {"head", 0, POPT_ARG_STRING, NULL, VAL_HEAD,
        "audit-log verify: the head that an earlier verify printed, which the log must still have",
        "SEQ:HASH"},
    {"no-fence", 0, POPT_ARG_NONE, NULL, VAL_NO_FENCE,
        "restore: do not mark the checkpoint store; only if no other belayd of the cluster can "
        "come back",
        NULL},
    {"dry-run", 0, POPT_ARG_NONE, NULL, VAL_DRY_RUN,
        "reload: print the changes without making them", NULL},
    POPT_TABLEEND,
};

struct given {
    struct admin_options o;
    unsigned vals; /* BIT(val) of the options that were given */
};

static int on_option(void *ctx, int val, const char *arg)
{
    struct given *g = ctx;
    char **const texts[] = {NULL, &g->o.state, &g->o.config, &g->o.passphrase_file,
        &g->o.encrypt_to, &g->o.key_file, &g->o.since, &g->o.head};
    g->vals |= BIT(val);
    if (val == VAL_NO_FENCE || val == VAL_DRY_RUN) {
        *(val == VAL_DRY_RUN ? &g->o.dry_run : &g->o.no_fence) = true;
        return CLI_OK;
    }
    free(*texts[val]);
    *texts[val] = mem_strdup(arg);
    return CLI_OK;
}

static int expected_action(const char *word)
{
    struct buf names = {0};
    for (size_t i = 0; i < N_ACTIONS; i++)
        buf_printf(&names, "%s%s",
            i == 0               ? ""
            : i + 1 == N_ACTIONS ? " or "
                                 : ", ",
            actions[i].name);
    cli_error("expected %s, found %s", buf_str(&names),
        word ? str_show(word, (char[STR_SHOW_MAX]){0}) : "nothing");
    buf_deinit(&names);
    return CLI_USAGE;
}

static int check_options(const struct action *a, const struct given *g)
{
    for (const struct poptOption *o = options; o->longName; o++)
        if ((g->vals & BIT(o->val)) && !(a->takes & BIT(o->val))) {
            cli_error(
                "--%s is not for belay admin %s (see belay admin --help)", o->longName, a->name);
            return CLI_USAGE;
        }
    if ((g->vals & BIT(VAL_PASSPHRASE)) && (g->vals & (BIT(VAL_ENCRYPT_TO) | BIT(VAL_KEY_FILE)))) {
        cli_error("--passphrase-file and a certificate or key exclude each other: give one");
        return CLI_USAGE;
    }
    return CLI_OK;
}

static int act(const struct given *g, const struct cli_args *args)
{
    const struct action *a = NULL;
    for (size_t i = 0; i < N_ACTIONS && args->n_rest > 0; i++)
        if (str_eq(actions[i].name, args->rest[0]))
            a = &actions[i];
    if (!a)
        return expected_action(args->n_rest > 0 ? args->rest[0] : NULL);
    if (args->n_rest > (a->word ? 2 : 1) || (args->n_rest < 2 && !a->is_optional)) {
        cli_error("expected belay admin %s%s%s%s", a->name,
            !a->word         ? ""
            : a->is_optional ? " ["
                             : " ",
            a->word ? a->word : "", a->word && a->is_optional ? "]" : "");
        return CLI_USAGE;
    }
    int rc = check_options(a, g);
    return rc != 0 ? rc : a->run(&g->o, args->n_rest > 1 ? args->rest[1] : NULL);
}

static int run(int argc, const char **argv)
{
    struct given g = {0};
    struct cli_args a;
    int rc = cli_parse(&verb_admin, argc, argv, false, on_option, &g, &a);
    g.o.json = a.json;
    if (rc == 0)
        rc = act(&g, &a);
    free(g.o.state);
    free(g.o.config);
    free(g.o.passphrase_file);
    free(g.o.encrypt_to);
    free(g.o.key_file);
    free(g.o.since);
    free(g.o.head);
    cli_args_deinit(&a);
    return rc < 0 ? CLI_OK : rc;
}

const struct verb verb_admin = {"admin",
    "[OPTION...] backup|verify|restore FILE | audit-log [verify] | reload | retention | "
    "log-level LEVEL | doctor",
    "back up belayd's state, verify and restore a backup; read and verify the audit log; have "
    "belayd read its configuration again; show what old jobs use; look for faults",
    run, options, false, .folds = true,
    .examples = "belay admin backup /backup\n"
                "belay admin verify /backup/belay-20261127T230000Z.tar\n"
                "belay admin restore --state /var/lib/belay /backup/belay-20261127T230000Z.tar\n"
                "belay admin audit-log verify\n"
                "belay admin reload --dry-run\n"
                "belay admin doctor\n"};
