/* SPDX-License-Identifier: Apache-2.0
 *
 * The options of a job, one row each: its name in the API, in the flags of submit, #BELAY and
 * #SBATCH and in belay update, its values, and when it may change. The command line, the API and
 * its description, the core's checks and updates, the messages to agents and the completions
 * iterate over this table. Only an option that fits no type has its own code. Pure.
 *
 * An option with JOB_IN_DOCUMENT needs only its row: no column, no member, no parser. The row of an
 * option that is a member of struct job_spec (spec.h) has the member's offset: spec_json.h reads,
 * writes, stores and shows the member, member.h gives access to it by its row. CONTRIBUTING.md has
 * the recipe.
 */
#ifndef BELAY_JOB_ATTRIBUTES_H
#define BELAY_JOB_ATTRIBUTES_H

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum job_type {
    JOB_TYPE_STRUCTURED, /* read by its own function */
    JOB_TYPE_IGNORED,    /* accepted, without effect */
    JOB_TYPE_TEXT,       /* at most `max` bytes of UTF-8; 0: belayd's limit applies */
    JOB_TYPE_NAME,       /* a name (base/str.h) of at most `max` bytes; `what` for errors */
    JOB_TYPE_URL,        /* http or https, at most `max` bytes */
    JOB_TYPE_INTEGER,    /* `min` .. `max` */
    JOB_TYPE_DURATION,   /* milliseconds, a second at least */
    JOB_TYPE_MONEY,      /* micro-dollars, more than 0, at most `max` */
    JOB_TYPE_MOMENT,     /* milliseconds since 1970; written as for --begin */
    JOB_TYPE_ENUM,       /* one of `words` */
    JOB_TYPE_BOOL,       /* yes or no */
    JOB_TYPE_TRUE,       /* a flag without a value: true */
    JOB_TYPE_FALSE       /* a flag without a value: false */
};

/* How a row's value is stored in struct job_spec. */
enum job_member_type {
    JOB_MEMBER_NONE, /* not in one member: in none, or in several */
    JOB_MEMBER_INT32,
    JOB_MEMBER_INT64,
    JOB_MEMBER_BOOL,
    JOB_MEMBER_NOT,    /* a bool that is true if the option is false */
    JOB_MEMBER_WORD,   /* an enum, index of `words` */
    JOB_MEMBER_MOMENT, /* struct wall */
    JOB_MEMBER_TEXT    /* char[size] */
};

enum job_unit { JOB_UNIT_NONE, JOB_UNIT_MS, JOB_UNIT_MINUTES, JOB_UNIT_MIB, JOB_UNIT_UUSD };

/* The parts of a job that an update can change; options that belong together share one. The values
 * are bit numbers of a set. */
enum job_field {
    JOB_FIELD_NONE = -1,
    UPDATE_NAME,
    UPDATE_TIME_LIMIT,
    UPDATE_RETRIES,
    UPDATE_NICE,
    UPDATE_DEADLINE,
    UPDATE_FINISH,
    UPDATE_WORK,
    UPDATE_AT_ONCE, /* for an array */
    UPDATE_MAX_USD,
    UPDATE_MAX_USD_H,
    UPDATE_POOL,
    UPDATE_MARKET,
    UPDATE_TEAM,
    UPDATE_QOS,
    UPDATE_BEGIN,
    UPDATE_WINDOW,
    UPDATE_DEPENDS,
    UPDATE_CPUS,
    UPDATE_MEMORY,
    UPDATE_GPUS,
    UPDATE_NODES,
    UPDATE_ON_LOSS,
    UPDATE_IDLE_GPUS,
    UPDATE_GPU_MODEL,
    UPDATE_GPU_MEMORY,
    UPDATE_CONSTRAINT,
    UPDATE_RESOURCES,
    UPDATE_LICENCES,
    UPDATE_EXCLUSIVE,
    UPDATE_NODELIST,
    UPDATE_EXCLUDE,
    UPDATE_INPUT,
    UPDATE_DOCUMENT, /* all options that are JOB_IN_DOCUMENT */
    UPDATE_FIELDS
};

enum job_attribute_mask {
    JOB_ALIAS = 1 << 0,       /* another flag or member for the option of an existing row */
    JOB_NOT_SLURM = 1 << 12,  /* a flag of belay's verbs and #BELAY only, not of sbatch */
    JOB_IN_DOCUMENT = 1 << 1, /* stored in the job's document of options; no decision reads it */
    /* programs of the job may change it with the token of its attempt: no decision reads it, and it
     * grants no rights */
    JOB_UPDATE_INSIDE = 1 << 16,
    /* properties of a field; one row of each field has them */
    JOB_WHILE_RUNNING = 1 << 2, /* may change while the job runs */
    JOB_OF_NODE = 1 << 3,       /* a change affects which nodes fit the job */
    /* is part of the job's constraints (core/placement/constraints.h) */
    JOB_OF_CONSTRAINTS = 1 << 4,
    /* after a change the job's eligibility and queue are decided again */
    JOB_OF_ELIGIBILITY = 1 << 5,
    JOB_OF_SHAPE = 1 << 6, /* a change affects which jobs it is planned together with */
    /* properties of a member of struct job_spec */
    JOB_READ_APART = 1 << 7,    /* read by its own function (scheduler/api/jobspec.c) */
    JOB_SHOWN = 1 << 8,         /* the API shows it */
    JOB_SHOWN_OR_NULL = 1 << 9, /* the API shows it, and null for the default */
    /* the API shows it as a time, under its name without "_ms"; null for the default */
    JOB_SHOWN_AS_TIME = 1 << 10,
    JOB_IN_COLUMN = 1 << 11 /* stored in a column of its own (db/columns.c) */
};

struct job_attribute {
    /* name in the API; "checkpoint.keep" is keep in the object checkpoint; NULL: none */
    const char *name;
    const char *flag; /* without dashes; NULL: no flag */
    char letter;      /* the short flag; 0: none */
    /* Slurm's variables for the flag, separated by blanks: SBATCH_ for sbatch, SALLOC_ for salloc,
     * SLURM_ or SRUN_ for srun; NULL: none */
    const char *env;
    const char *takes; /* the flag's argument, for people; NULL: none */
    const char *help;
    const char *alias_of;  /* the flag that this flag is another name of; NULL: none */
    const char *api_help;  /* help of the API's member, if it differs from the flag's; NULL: help */
    const char *bare;      /* the flag's value if none is given; NULL: a value is required */
    const char *key;       /* key in belay update; NULL: none */
    const char *key_flag;  /* the flag that parses the key's value; NULL: this row's flag */
    const char *key_takes; /* argument of the key, if it differs from the flag's */
    const char *key_help;  /* help of the key, if it differs from the flag's */
    const char *reset;     /* JSON: the members that key=none sets; NULL: none is not allowed */
    const char *what;      /* "a team's name", for errors */
    const char *none;      /* text for the default in the history; NULL: the value itself */
    const char *const *words;
    /* key in messages to agents (base/wire/wire.h), which omit 0, "" and false; NULL: not sent to
     * agents */
    const char *wire;
    /* the default (job_spec_default) may be outside: it means that the option is absent */
    int64_t min, max;
    int64_t flag_min; /* minimum of the flag, if it is greater than min; 0: min */
    enum job_type type;
    enum job_unit unit;
    enum job_member_type member_type; /* how the value is stored in struct job_spec, at `at` */
    size_t at, size;
    enum job_field field; /* the part of the job that an update of this option changes */
    unsigned masks;
};

/* In the order of --help; ends with job_attributes_count. */
extern const struct job_attribute job_attributes[];
extern const size_t job_attributes_count;

/* Members of struct job_spec that have a name in stored specs (spec_json.h) but are not options:
 * users write them in another form. */
extern const struct job_attribute job_stored[];
extern const size_t job_stored_count;

/* The row with this flag, long or of one letter; NULL: none. */
const struct job_attribute *job_attribute_by_flag(const char *name);
/* The row with this member of the API; NULL: none. */
const struct job_attribute *job_attribute_by_name(const char *name);
/* The row with this key of belay update; NULL: none. */
const struct job_attribute *job_attribute_by_key(const char *key);

/* The maximum of this member, which must have a row. */
int64_t job_attribute_max(const char *name);

/* The name of the first option of this field. */
const char *job_field_name(enum job_field field);

/* Whether a text is a value of a row of type TEXT, NAME, URL or ENUM. ERR_INVALID. */
int job_attribute_check(const struct job_attribute *a, const char *text, struct err *e);

#endif
