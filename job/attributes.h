/* SPDX-License-Identifier: Apache-2.0
 *
 * The options of a job, one row each: what the API and the flags of submit, #BELAY, #SBATCH and
 * belay update call it, which values it takes, and when it may change. The command line, the API,
 * its description, the core's checks and updates, the messages to agents and the completions walk
 * this table; only what does not fit a type has code of its own. Pure.
 *
 * A new option of a JOB_IN_DOCUMENT row needs nothing else: no column, no member, no parser. One
 * that is a member of struct job_spec (spec.h) says where: spec_json.h reads, writes, stores and
 * shows it, member.h gives access to it by its row. CONTRIBUTING.md has the recipe.
 */
#ifndef BELAY_JOB_ATTRIBUTES_H
#define BELAY_JOB_ATTRIBUTES_H

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum job_type {
    JOB_TYPE_STRUCTURED, /* read by a function of its own */
    JOB_TYPE_IGNORED,    /* accepted, without effect */
    JOB_TYPE_TEXT,       /* at most `max` bytes of UTF-8; 0: what belayd takes */
    JOB_TYPE_NAME,       /* a name (base/str.h) of at most `max` bytes; `what` for errors */
    JOB_TYPE_URL,        /* http or https, at most `max` bytes */
    JOB_TYPE_INTEGER,    /* `min` .. `max` */
    JOB_TYPE_DURATION,   /* milliseconds, a second at least */
    JOB_TYPE_MONEY,      /* micro-dollars, more than 0, at most `max` */
    JOB_TYPE_MOMENT,     /* milliseconds since 1970, as --begin takes it */
    JOB_TYPE_ENUM,       /* one of `words` */
    JOB_TYPE_BOOL,       /* yes or no */
    JOB_TYPE_TRUE,       /* a flag without a value: true */
    JOB_TYPE_FALSE       /* a flag without a value: false */
};

/* How a row's member of struct job_spec is held. */
enum job_member_type {
    JOB_MEMBER_NONE, /* it is no member of it, or of several */
    JOB_MEMBER_INT32,
    JOB_MEMBER_INT64,
    JOB_MEMBER_BOOL,
    JOB_MEMBER_NOT,    /* a bool that says the opposite */
    JOB_MEMBER_WORD,   /* an enum, of `words` */
    JOB_MEMBER_MOMENT, /* struct wall */
    JOB_MEMBER_TEXT    /* char[size] */
};

enum job_unit { JOB_UNIT_NONE, JOB_UNIT_MS, JOB_UNIT_MINUTES, JOB_UNIT_MIB, JOB_UNIT_UUSD };

/* What of a job an update changes; some options belong together. The values are bits of a set. */
enum job_field {
    JOB_FIELD_NONE = -1,
    UPDATE_NAME,
    UPDATE_TIME_LIMIT,
    UPDATE_RETRIES,
    UPDATE_NICE,
    UPDATE_DEADLINE,
    UPDATE_FINISH,
    UPDATE_WORK,
    UPDATE_AT_ONCE, /* of an array */
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
    JOB_ALIAS = 1 << 0,       /* another flag or member for a row that is there */
    JOB_NOT_SLURM = 1 << 12,  /* a flag of belay's verbs and #BELAY only, not of sbatch */
    JOB_IN_DOCUMENT = 1 << 1, /* stored in the job's document of options; no decision reads it */
    /* what runs in the job may change it with the token of its attempt: no decision reads it, and
     * it grants no rights */
    JOB_UPDATE_INSIDE = 1 << 16,
    /* of a field; one row of each says so */
    JOB_WHILE_RUNNING = 1 << 2,  /* may change while the job runs */
    JOB_OF_NODE = 1 << 3,        /* changes which nodes fit it */
    JOB_OF_CONSTRAINTS = 1 << 4, /* is part of its constraints (core/placement/constraints.h) */
    JOB_WAITS_ANEW = 1 << 5,     /* it may be eligible now, or not, or be in another queue */
    JOB_OF_SHAPE = 1 << 6,       /* changes which jobs it is planned together with */
    /* of a member of struct job_spec */
    JOB_READ_APART = 1 << 7,     /* a function of its own reads it (scheduler/api/jobspec.c) */
    JOB_SHOWN = 1 << 8,          /* the API shows it: as it is; */
    JOB_SHOWN_OR_NULL = 1 << 9,  /* null where it is the default; */
    JOB_SHOWN_AS_TIME = 1 << 10, /* likewise, else as a time, under its name without "_ms" */
    JOB_IN_COLUMN = 1 << 11      /* stored in a column of its own (db/columns.c) */
};

struct job_attribute {
    const char *name; /* the API's member, "checkpoint.keep" of an object; NULL: has none itself */
    const char *flag; /* without dashes; NULL: no flag */
    char letter;      /* its short flag; 0: none */
    /* variables of Slurm that stand for the flag, with blanks between: those of sbatch begin with
     * SBATCH_, of salloc with SALLOC_, of srun with SLURM_ or SRUN_; NULL: none */
    const char *env;
    const char *takes; /* what the flag takes, for people; NULL: nothing */
    const char *help;
    const char *api_help;  /* of the member, where a flag's words do not fit it; NULL: help */
    const char *bare;      /* what the flag means without a value; NULL: it needs one */
    const char *key;       /* of belay update; NULL: none */
    const char *key_flag;  /* the flag by which the key's value is read; NULL: its own */
    const char *key_takes; /* a key that is read otherwise than the flag: what it takes ... */
    const char *key_help;  /* ... and its help */
    const char *reset;     /* JSON: members that stand for key=none; NULL: it needs a value */
    const char *what;      /* "a team's name", for errors */
    const char *none;      /* what the history says for the default; NULL: the value, if any */
    const char *const *words;
    /* its key in messages to agents (base/wire/wire.h), where 0, "" and false are absence; NULL:
     * agents do not get it */
    const char *wire;
    int64_t min, max; /* the default (job_spec_default) need not be in between: it is absence */
    int64_t flag_min; /* the least that the flag takes, where that is more than min; 0: min */
    enum job_type type;
    enum job_unit unit;
    enum job_member_type member_type; /* in struct job_spec, there: */
    size_t at, size;
    enum job_field field; /* what an update of the member changes */
    unsigned masks;
};

/* In the order of --help; ends with job_attributes_count. */
extern const struct job_attribute job_attributes[];
extern const size_t job_attributes_count;

/* What of struct job_spec is stored otherwise than its users write it: it has a name in what is
 * stored (spec_json.h), and is no option. */
extern const struct job_attribute job_stored[];
extern const size_t job_stored_count;

/* The row with this flag, long or of one letter; NULL: none. */
const struct job_attribute *job_attribute_by_flag(const char *name);
/* The row with this member of the API; NULL: none. */
const struct job_attribute *job_attribute_by_name(const char *name);
/* The row with this key of belay update; NULL: none. */
const struct job_attribute *job_attribute_by_key(const char *key);

/* The most that this member may be; there is a row with it. */
int64_t job_attribute_max(const char *name);

/* The name of the first member that the field stands for. */
const char *job_field_name(enum job_field field);

/* Whether a text is a value of a row of type TEXT, NAME, URL or ENUM. ERR_INVALID. */
int job_attribute_check(const struct job_attribute *a, const char *text, struct err *e);

#endif
