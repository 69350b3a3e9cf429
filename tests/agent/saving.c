/* SPDX-License-Identifier: Apache-2.0 */
#include "saving.h"

#include "base/time.h"
#include "ckpt/ckpt.h"

#include <string.h>

const char coop_script[] =
    "#!/bin/sh\n"
    "n=0\n"
    "[ \"$BELAY_RESTORED\" = 1 ] && n=$(cat \"$BELAY_CHECKPOINT_DIR/n\")\n"
    "echo start $n\n"
    "k=1\n"
    "while [ $n -lt 100000 ]; do\n"
    "  n=$((n + 1))\n"
    "  echo \"{\\\"done\\\":$n,\\\"total\\\":100000}\" >\"$BELAY_CONTROL_DIR/p\"\n"
    "  mv \"$BELAY_CONTROL_DIR/p\" \"$BELAY_CONTROL_DIR/progress\"\n"
    "  if [ -e \"$BELAY_CONTROL_DIR/request\" ]; then\n"
    "    cat \"$BELAY_CONTROL_DIR/request\" 2>/dev/null; echo\n"
    "    echo $n >\"$BELAY_CHECKPOINT_DIR/n\"\n"
    "    echo \"{\\\"progress\\\":$n,\\\"total\\\":null}\" >\"$BELAY_CONTROL_DIR/c\"\n"
    "    mv \"$BELAY_CONTROL_DIR/c\" \"$BELAY_CONTROL_DIR/commit.$k\"\n"
    "    while [ ! -e \"$BELAY_CONTROL_DIR/result.$k\" ]; do sleep 0.02; done\n"
    "    cat \"$BELAY_CONTROL_DIR/result.$k\"; echo\n"
    "    grep -q '\"stop\":true' \"$BELAY_CONTROL_DIR/result.$k\" && exit 85\n"
    "    k=$((k + 1))\n"
    "  fi\n"
    "  sleep 0.02\n"
    "done\n";

const char commit_once_script[] =
    "#!/bin/sh\n"
    "echo state >\"$BELAY_CHECKPOINT_DIR/state\"\n"
    "echo '{\"progress\":5}' >\"$BELAY_CONTROL_DIR/c\"\n"
    "ln \"$BELAY_CONTROL_DIR/c\" \"$BELAY_CONTROL_DIR/commit.1\"\n"
    "while [ ! -e \"$BELAY_CONTROL_DIR/result.1\" ]; do sleep 0.02; done\n"
    "cat \"$BELAY_CONTROL_DIR/result.1\"; echo\n"
    "sleep 1000\n";

const char resume_script[] = "#!/bin/sh\n"
                             "echo \"$BELAY_RESTORED $(cat \"$BELAY_CHECKPOINT_DIR/state\")\"\n";

struct wire_desired_attempt *want_coop(struct world *w, int64_t attempt, const char *script)
{
    struct wire_desired_attempt *a = world_want(w, 1, attempt, script);
    a->method = WIRE_METHOD_COOP;
    return a;
}

void assert_end(struct world *w, enum wire_end end)
{
    const struct wire_attempt_status *s = world_reported(w, 1);
    if (s->end != end)
        fail_msg("ended as %s (%s), output: %s", wire_word_name(wire_end_names, (int)s->end),
            s->text, world_output(w, 1));
}

bool has_committed(struct world *w, int64_t job)
{
    return world_task_has(w, job, 1, "control/commit.1");
}

bool output_has_result(struct world *w, int64_t job)
{
    return strstr(world_output(w, job), "\"ok\":") != NULL;
}

bool has_two_checkpoints(struct world *w, int64_t job)
{
    const struct wire_attempt_status *s = world_reported(w, job);
    return s && s->n_checkpoints >= 2 && s->checkpoints[s->n_checkpoints - 1].sequence >= 4;
}

static int note_kept(void *ctx, const struct ckpt_info *info)
{
    struct kept *k = ctx;
    k->n++;
    k->has_third |= info->id.sequence == 3;
    k->has_first |= info->id.sequence == 1;
    k->newest = info->id.sequence > k->newest ? info->id.sequence : k->newest;
    return 0;
}

struct kept stored_checkpoints(struct world *w)
{
    struct store *store;
    struct err e;
    struct kept n = {0};
    assert_int_equal(store_open(w->store_url, NULL, &store, &e), 0);
    const struct ckpt_job j = {.store = store, .cluster = "lab", .job = 1};
    assert_int_equal(ckpt_list(&j, note_kept, &n, &e), 0);
    store_close(store);
    return n;
}
