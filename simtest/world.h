/* SPDX-License-Identifier: Apache-2.0
 *
 * A simulated world: the real core, tick, sessions, provisioning and database, in virtual time,
 * against a provider, agents, a checkpoint store and users that are played from one seed, with
 * everything that can go wrong going wrong. A seed that fails replays exactly.
 *
 *   users --submit, cancel, requeue, drain--> [ belayd's code ] --launch, list, terminate--> cloud
 *                                                ^  |                                          |
 *                                                |  v wire messages, encoded and decoded       v
 *                                              agents <---------- machines, boots, notices, kills
 *                                                |
 *                                                v save, fence, restore
 *                                              store
 *
 * belayd is "killed" between any two events and in the middle of commits, and comes back from its
 * database. The checks (check.c) are the five promises, looked at after every event.
 */
#ifndef BELAY_SIMTEST_WORLD_H
#define BELAY_SIMTEST_WORLD_H

#include "base/map.h"
#include "base/prng.h"
#include "base/vtimers.h"
#include "base/wire/wire.h"
#include "cloud/driver.h"
#include "db/db.h"
#include "scheduler/engine/cleaner.h"
#include "scheduler/engine/outbox.h"
#include "scheduler/engine/provision.h"
#include "scheduler/engine/sessions.h"
#include "scheduler/engine/tick.h"

#define SIM_JOBS_MAX 64
#define SIM_MACHINES_MAX 4096
#define SIM_MANIFESTS_MAX 256
#define STEP_MS 100          /* one step of a simulated program */
#define SIM_REQUIRE 4        /* one world in so many has a pool that asks for drills, ... */
#define SIM_VALID_MS 3600000 /* ... and of the last hour */

#define SIM_EXCLUDE 7          /* or do not want to be on a node that is there */
#define SIM_ALONE 5            /* in one world in so many some want their nodes for themselves */
#define SIM_CONTENT_BYTES 1024 /* of a checkpoint; */
#define SIM_STORED_BYTES 512   /* compressed */
#define SIM_STORE_UUSD_GIB_MONTH MODEL_STORE_UUSD_MAX /* for there is so little */
/* of so many worlds one has its store elsewhere, which wants money (traffic.c) */
#define SIM_ELSEWHERE 5
#define SIM_BUDGETS 4  /* in one world in so many some are paid from a budget (paid.c) */
#define SIM_BOOTLESS 9 /* in one world in so many machines do not join for a while (boots.c) */
#define SIM_BACKOFF_MS 20000 /* refusal_backoff of the elastic pool */
#define SIM_RACKS 4          /* of so many worlds one has a rack, unless it has quotas (racks.c) */
/* of so many worlds one has quotas, one has limits, and one classes that preempt others
 * (quotas.c) */
#define SIM_QUOTAS 3
#define SIM_DISKS 6  /* in one world in so many the disks of nodes are full for a while (disks.c) */
#define SIM_GRANTS 7 /* of so many one where credentials cannot be made for a while (grants.c) */
#define SIM_STORE_WAIT_MS 600000

struct world;

/* ---- store.c: one job's checkpoints, with the store's own rules ---- */
struct sim_manifest {
    struct ckpt_ref ref;
    int64_t steps;
    bool damaged;
};

#define SIM_AWAY 5           /* in so many worlds one loses its store now and then */
#define SIM_CLOSED INT64_MAX /* the fence of a store that is closed */

struct sim_store_job {
    int64_t fence;
    char identity[CKPT_IDENTITY_MAX]; /* of the job that began there; "": none has */
    struct sim_manifest *manifests;
    size_t n;
    /* the first so many are not to be found: somebody moved the store away, or emptied it */
    size_t away;
    /* Its provider's meter (traffic.c), up to metered_at: what was there, and by how much belayd,
     * as is committed, thought otherwise. */
    struct wall metered_at;
    int64_t byte_ms, differ_byte_ms;
    int64_t known_bytes, changes;
    /* more and less together, since belayd committed what it knows: what has come and gone cannot
     * be told apart by the sum */
    int64_t changed_bytes;
};

void store_fence(struct world *w, int64_t job, int64_t attempt);
/* An attempt begins, or a cleaning does: all that are of one job say the same. */
void store_claim(struct world *w, int64_t job, const char *identity);
/* False: fenced. */
bool store_commit(struct world *w, int64_t job, struct ckpt_ref ref, int64_t steps);
struct ckpt_ref store_newest(const struct world *w, int64_t job); /* attempt 0: there is none */
/* The newest sound one of an attempt before `attempt` and from `from` on; ref.attempt 0: none. Sets
 * damaged ones aside, counting them. *ret_lost: `expected` is not there, nor a newer one, or all
 * that are there are damaged. */
struct sim_manifest store_restore(struct world *w, int64_t job, int64_t attempt, int64_t from,
    struct ckpt_ref expected, int *ret_damaged, bool *ret_lost);
/* What the job has there cannot be found any more, until it is brought back. In some worlds. */
void store_take_away(struct world *w, int64_t job);
void store_bring_back(struct world *w, int64_t job);
/* As agents do: the newest stay; how many bytes then. */
int64_t store_clean(struct world *w, int64_t job, int64_t attempt);
bool store_has(const struct world *w, int64_t job, struct ckpt_ref ref);
/* Cleaning for belayd: takes its time, may fail after some of it is done, and dies with belayd. */
struct sim_sweeper {
    struct cleaner_port port;
    struct world *w;
    struct cleaner_job job;
    cleaner_done_fn done;
    void *ctx;
    struct timer timer;
};
void store_sweeper_init(struct world *w);
void store_sweeper_kill(struct world *w);

/* ---- outbox.c ---- */
struct sim_delivery {
    struct world *w;
    int64_t job;
    enum notify_event kind;
    outbox_done_fn done;
    void *ctx;
    struct timer timer;
};
struct sim_postman {
    struct outbox_port port;
    struct world *w;
    struct sim_delivery deliveries[OUTBOX_AT_ONCE];
};
extern const struct notify_hook sim_hook; /* of the configuration: wants all but tasks */
void outbox_port_init(struct world *w);
void outbox_port_kill(struct world *w);
void outbox_port_committed(struct world *w, const struct db_batch *b);
/* at the end, of a job that has ended */
void outbox_check(struct world *w, const struct job_row *r);

#define START_WALL_MS 1767225600000LL /* 2026-01-01 */

/* ---- cloud.c ---- */
/* The types of machines; owned ones are as small. */
#define SIM_SMALL "m5.xlarge"
#define SIM_BIG "m5.2xlarge"
struct resources world_machine(const char *type);

struct sim_machine {
    struct world *w;
    char id[32];
    char token[65];
    enum cloud_market market;
    char zone[16], type[64];
    enum cloud_state state;
    bool reclaimed, is_elsewhere; /* than belayd thinks until its launch is told */
    int64_t launched_ms;          /* monotonic */
    int64_t visible_from_ms;      /* listings lag */
    int64_t gone_ms;
    struct wall ended_at; /* since then it is not billed; WALL_NONE */
    struct timer boot, reclaim, kill, end;
    struct sim_agent *agent;
};

/* What machines of SIM_SMALL on spot have cost in a zone, oldest first, by the provider's clock. */
#define SIM_PRICES_MAX 2000
struct sim_prices {
    struct wall since[SIM_PRICES_MAX];
    int64_t uusd_h[SIM_PRICES_MAX];
    int n, n_heard; /* that belayd has stored */
};

struct cloud_driver *cloud_create(struct world *w);
/* What its provider bills for a machine that has ended. */
void cloud_bill(const struct sim_machine *m, int64_t *ret_ms, int64_t *ret_uusd);
/* it tells when a machine was launched and had ended: belayd can know its bill */
bool cloud_bills(const struct world *w);
void cloud_heard(struct world *w, const struct offer_row *r); /* committed */
/* A change of price that belayd could not store (its disk was full, or it died) has not been: it
 * bills what it told. */
void cloud_forget_unheard(struct world *w);
void cloud_destroy(struct world *w);
void cloud_forget_calls(struct world *w); /* belayd died: nobody waits for replies any more */
void cloud_kill(struct sim_machine *m, bool reclaimed);
int cloud_alive(const struct world *w);

/* ---- agent.c ---- */
enum sim_phase { SIM_RESTORING, SIM_RUNNING, SIM_ENDED };

struct sim_attempt {
    struct sim_agent *agent;
    struct link in_agent;
    int64_t job, attempt, rank, ranks;
    enum sim_phase phase;
    int64_t restored_steps;
    int64_t base_steps;  /* where it goes on: there, unless it forgets */
    int64_t ran_from_ms; /* monotonic, when running began */
    struct ckpt_ref restored;
    int64_t nearby_bytes; /* of what was restored */
    int64_t kept_bytes;   /* in the store since it was cleaned; 0: it was not */
    int damaged;
    int64_t started_wall;
    int64_t sequence, acked, saving_steps;
    struct wire_checkpoint *saved;
    size_t n_saved;
    bool saving, stop_after_save;
    bool holds; /* it has no script: it ends when it is told to */
    enum wire_end stop_reason;
    enum wire_cause save_cause;
    int64_t failed_saves;
    int refusals;        /* of the store, that are left before it restores; */
    bool is_refused;     /* or ends for them */
    int64_t store_tries; /* so far */
    enum wire_end end;
    int64_t exit_code;
    struct timer finish, save_done, periodic;
    int64_t every_ms;
    struct daily daily;
    int64_t saves_asked; /* as belayd last said, and a save has begun since */
};

struct sim_agent {
    struct world *w;
    struct link in_world;
    struct sim_machine *machine; /* NULL: reserved */
    char key[65];
    int64_t node; /* 0: not joined */
    bool dead, up;
    int64_t cut_until_ms; /* partitioned */
    int64_t incarnation, seq, rev;
    int64_t obeyed; /* the event in which `rev` was said */
    struct wire_notice notice;
    struct list attempts;
    int64_t full_until_ms; /* its disk (disks.c) */
    int64_t room_seq;      /* the last status that did not say so, or an earlier run's */
    bool is_full_told; /* belayd has answered one that did, and none has been sent that did not */
    struct timer poll, restart, crash;
    int polls; /* under way */
    int tries;
};

void agent_boot(struct world *w, struct sim_machine *m);
void agent_kill(struct sim_agent *a); /* with its machine */
void agent_notice(struct sim_agent *a, enum wire_notice_kind kind, int64_t deadline_ms);
bool agent_has(struct sim_agent *a, int64_t job, int64_t attempt);
void agent_destroy_all(struct world *w);
struct sim_call;
void agent_call_broken(struct sim_call *c); /* belayd died while it held the request */

/* ---- disks.c ---- */
void disks_trouble(struct world *w); /* now and then */
bool disks_is_full(const struct sim_agent *a);
void disks_sent(struct sim_agent *a, const struct wire_status *st);
void disks_answered(struct sim_agent *a, int64_t incarnation, const struct wire_status *st);
void disks_forgotten(struct world *w); /* belayd has died */
/* an attempt that was not there before */
void disks_committed_attempt(struct world *w, const struct attempt_row *r);

/* ---- users.c ---- */
void users_start(struct world *w);
bool users_done(const struct world *w);
void users_stop(struct world *w);

/* ---- crons.c ---- */
void crons_init(struct world *w); /* its clock is set */
void crons_deinit(struct world *w);
int crons_read_job(
    const char *job_json, struct job_row *ret_job, struct job_texts *ret_texts, struct err *e);
void crons_ask(struct world *w); /* belayd is up */
bool crons_done(const struct world *w);
void crons_committed(struct world *w, const struct changes *c);

/* ---- paid.c ---- */
/* of the configuration */
const struct budget_options *paid_options(struct world *w, size_t *ret_n);
/* of a job that is submitted, which fits into the budget then */
const char *paid_labels(struct world *w, struct job_row *r);
/* it is of the budget, and has to stay one that fits into it */
bool paid_is(struct world *w, int64_t job);
void paid_committed(struct world *w, const struct changes *c);
void paid_check(struct world *w); /* belayd is up */
void paid_deinit(struct world *w);

/* ---- traffic.c ---- */
/* What an agent read or wrote for an attempt: a restore or its input (sequence 0), or a
 * checkpoint. */
struct sim_transfer {
    int64_t job, attempt, node, sequence, uusd;
};
/* What jobs that ask for this read when they start. */
struct sim_input {
    int64_t constraints, bytes;
    char from[8]; /* a provider; "store" */
};
void traffic_prices(const struct world *w, struct pool_row *p);
/* what the provider takes for what leaves it: model_options.egress */
struct egress traffic_egress(const char *provider);
void traffic_read(struct world *w, const struct sim_attempt *x, int64_t bytes);
/* its program reads its part of what the job reads */
void traffic_started(struct world *w, const struct sim_attempt *x);
/* as the checkpoint of its number */
void traffic_written(struct world *w, const struct sim_attempt *x, int64_t bytes);
/* it is about to have so many more of the job, or less */
void traffic_store_changes(struct world *w, int64_t job, int64_t manifests);
int64_t traffic_store_price(const struct world *w);
void traffic_committed(struct world *w, const struct changes *c);
void traffic_check(struct world *w); /* everything is over */
void traffic_deinit(struct world *w);

/* ---- quotas.c ---- */
const struct order_options *quotas_order(struct world *w);
void quotas_committed(struct world *w, const struct changes *c); /* belayd's model is as of then */
void quotas_check(struct world *w);                              /* belayd is up */

/* ---- racks.c ---- */
bool racks_are_there(const struct world *w);
size_t racks_of(const struct world *w, const struct rack_options **ret_racks); /* how many */
void racks_check(struct world *w); /* belayd is up; so these: */
/* a node is held back, or draws more than it should, or does not any more */
void racks_trouble(struct world *w);
void racks_calm(struct world *w); /* none is */

/* ---- boots.c ---- */
/* What is committed of the machines of the elastic pool. */
struct sim_boots {
    struct map states;               /* enum instance_state, one up, by id */
    int64_t coming, failed, last_id; /* failed: in a row */
    /* since so many had failed; of those with a higher id so many have failed as well */
    int64_t since_ms, before_id, probes;
};
bool boots_fail_now(struct world *w);
void boots_committed(struct world *w, const struct changes *c);
void boots_deinit(struct world *w);

/* ---- grants.c ---- */
#define SIM_NO_GRANTS "the simulated token service gives nothing"
bool grants_of_job(
    void *ctx, int64_t job, int64_t attempt, struct wire_secrets *ret_secrets, struct err *ret_why);
void grants_committed_attempt(struct world *w, const struct attempt_row *r);

/* ---- world.c ---- */
struct sim_job {
    /* for spot, with less time left than there is to do; 0: it does not (check.c) */
    int64_t waits_since_ms;
    int64_t id; /* 0: not acknowledged */
    int64_t total_steps;
    bool fails, cancelled;
    bool forgets;   /* saves, and begins again all the same */
    int64_t losses; /* attempts that ended with their machine */
    char script[65];
    enum job_state seen;
    struct ckpt_ref last_good;
    int64_t from_attempt;           /* its user gave up what was before, as is committed */
    bool paid;                      /* from the budget */
    int64_t constraints;            /* what it asks for, as is committed */
    int64_t cost_uusd, ledger_uusd; /* likewise what it cost, and what the ledger has of it */
    int64_t attempts, ends, ends_delivered;
    bool has_begun; /* it, or a task of it */
    enum end_kind end;
    int32_t refusing; /* attempts that its store will refuse */
    /* belayd can make no credentials for it until then: as none answers, or since it may not */
    int64_t no_grants_until_ms;
    bool is_denied;
    /* the attempt that they were last asked for; and in which life of belayd, since when */
    int64_t asked_attempt, asked_boots, asked_since_ms;
    /* retries for failures and lost nodes, as is committed */
    int32_t used;
    /* attempts in a row that could not use the store */
    int32_t away;
    /* of an array: its tasks that had begun and not ended at the last look */
    int64_t n_living;
    bool was_gang; /* of several nodes, once */
    /* for something that it does not wait for any more */
    bool waited_else;
    /* of an array: its tasks, and those that began and have ended */
    int64_t n_tasks, n_tasks_succeeded, n_tasks_ended;
    struct ranges left; /* likewise: those that have not begun */
    int64_t array;      /* of a task; CORE_ID_NONE */
    int32_t index;
    struct dependency_row after; /* on CORE_ID_NONE: on no job */
    struct wall evicted_at;      /* last; 0: never */
};

/* A request on the wire: dies with belayd. */
struct sim_call {
    struct link in_world;
    struct world *w;
    struct sim_agent *agent;
    int64_t incarnation;
    int kind;
    struct timer timer;
    struct wire_status status;
    struct wire_desired *desired; /* its copy, on the way back */
    int64_t said;                 /* in this event */
    bool sent;
};

/* The ledger rows of an instance. */
struct sim_spent {
    int64_t ms, uusd;
    char token[65];
    /* as its row says; told: by the provider, not by its agent alone */
    bool is_launched, is_told, is_over;
    bool is_repriced; /* before it was told */
};

struct world {
    struct sim_boots boots_seen;
    uint64_t seed;
    struct prng prng;
    struct vtimers vt;
    struct db *db;
    struct db_reader *reader;
    /* belayd, while it is up */
    bool up;
    int64_t boots;
    struct model *model;
    /* from when on jobs that are to be done by some moment are looked at again, by our clock */
    int64_t deadlines_at;
    /* how many events had been applied to the model when it was looked at last; -1: it is new */
    int64_t checked_at;
    struct planner *planner;
    struct tick *tick;
    struct sessions *sessions;
    struct provision *provision;
    struct cleaner *cleaner;
    struct sim_sweeper sweeper;
    struct outbox *outbox;
    struct sim_postman postman;
    int64_t deliveries;
    struct commit_port port;
    const struct db_batch *committing;
    struct timer commit_timer, crash_timer, restart_timer;
    struct cloud_driver *driver;
    char cluster_uid[17];
    int64_t full_until_ms;
    /* the rest of the world */
    struct list calls;
    struct list agents;
    struct sim_machine *machines[SIM_MACHINES_MAX];
    int n_machines;
    struct list cloud_calls;
    struct sim_prices prices[2]; /* of z1 and z2 */
    char unseen[16]; /* the zone that the newest listing could not see; "": it was whole */
    struct sim_store_job store[SIM_JOBS_MAX];
    struct sim_job jobs[SIM_JOBS_MAX]; /* by id - 1 */
    int n_jobs;                        /* wanted */
    int64_t acked[SIM_JOBS_MAX];
    int n_acked, n_submits;
    struct timer user_timer, trouble_timer;
    bool calm; /* no more trouble: let it end */
    /* what is committed, as the checks keep it */
    struct map attempts; /* (job, attempt, node): what is committed */
    struct smap tokens;  /* token -> instance state + 1 */
    struct map spent;    /* instance -> struct sim_spent */
    struct smap places;  /* token -> where its launch may be answered from, as first said; owned */
    int64_t last_history;
    struct map drills;  /* job * 2^20 + number -> state + 1 */
    struct smap proven; /* script -> when a drill of it last passed, in ms + 1 */
    struct map spot;    /* nodes of the pool on spot machines */
    struct zones zones;
    struct zone_source zone_source;
    int64_t cron_begin_s;
    bool cron_seen, cron_removed;     /* the entry is, or was and is not any more */
    struct wall cron_first;           /* its first time */
    int64_t cron_decided;             /* how many of its times are decided on */
    struct map cron_times, cron_jobs; /* times -> anything, or the job */
    struct budget_options budget;
    int n_paid;                       /* jobs that were submitted to be paid from it */
    int64_t paid_uusd;                /* that they have cost, as is committed */
    struct map paid_hours, paid_told; /* hours of it that began; parts of them that were told of */
    struct wall paid_hour, used_up_at;
    struct sim_transfer *transfers; /* all that there were */
    size_t n_transfers;
    struct sim_input *inputs;
    size_t n_inputs;
    struct order_options order;
    struct order_team teams[3];
    struct order_user members[3][2]; /* of each */
    struct order_qos classes[2];
    uint64_t preempted;    /* of them, a bit each */
    int64_t owed_since_ms; /* until then nobody was kept from what it was owed */
    /* counters */
    int32_t hold_in_vain; /* as model_options has it */
    int64_t events, crashes, reclaims, kills, launches, lost_messages, saves, cleanings, drilled,
        evictions;
    char failure[512]; /* the first broken promise */
    uint64_t digest;   /* see digest.h */
};

int64_t world_now(const struct world *w);
struct stamp world_stamp(const struct world *w);
bool world_chance(struct world *w, double p);
int64_t world_between(struct world *w, int64_t min, int64_t max);
void world_fail(struct world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
struct sim_job *world_job(struct world *w, int64_t id);

/* ---- check.c ---- */
void check_committed(struct world *w, const struct db_batch *b);
bool wants_alone(const struct world *w, const struct job *j); /* to have its nodes for itself */
void check_model(struct world *w);
void check_launch(struct world *w, const char *token);
void check_alternatives(struct world *w, const struct cloud_launch *l);
void check_terminate(struct world *w, const char *token);
void check_desired(struct world *w, int64_t job, int64_t attempt, int64_t node);
void check_end(struct world *w);

struct sim_result {
    char failure[512]; /* "": every promise held */
    int64_t events, crashes, reclaims, kills, launches, saves, jobs, drilled, evictions;
    int64_t virtual_ms;
    uint64_t digest; /* of what was committed, see digest.h */
};

/* One life of a world. The database is emptied for it. */
void sim_run(struct db *db, uint64_t seed, struct sim_result *ret_result);

#endif
