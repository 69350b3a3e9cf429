/* SPDX-License-Identifier: Apache-2.0
 *
 * Provisioning in the lab with a scripted provider: its calls are recorded, and answered at once
 * from the provider's state, or by the test.
 */
#ifndef BELAY_TESTS_SCHEDULER_RIG_H
#define BELAY_TESTS_SCHEDULER_RIG_H

#include "tests/scheduler/lab.h"

#define SWEEP_MS 60000
#define BUSY_SWEEP_MS 5000
#define SETTLE_MS 30000
#define PRICE_MS 300000
#define MACHINES_MAX 16
#define CALLS_MAX 4000

enum call_kind { CALL_LAUNCH, CALL_LIST, CALL_TERMINATE, CALL_PRICES };

/* A call of the driver until it is answered. */
struct call {
    enum call_kind kind;
    bool answered;
    struct mono at;
    char token[CLOUD_TOKEN_MAX], id[CLOUD_NAME_MAX], zone[CLOUD_NAME_MAX];
    enum cloud_market market;
    struct cloud_target others[CLOUD_ALTERNATIVES_MAX]; /* borrowed from offers, which stay */
    size_t n_others;
    char *user_data;
    cloud_refused_fn refused;
    union {
        cloud_launch_fn launched;
        cloud_list_fn listed;
        cloud_done_fn done;
        cloud_prices_fn prices;
    };
    void *ctx;
};

struct fixture {
    struct cloud_driver driver; /* first: passed to ops */
    struct lab *lab;
    struct prng prng;
    struct call calls[CALLS_MAX];
    size_t n_calls;
    /* The provider's state, for calls that are answered at once. */
    struct cloud_instance machines[MACHINES_MAX];
    size_t n_machines;
    bool by_hand[4]; /* calls of this type wait for the test */
    enum err_kind launch_error, list_error, terminate_error;
    int n_released; /* releases of this driver */
    bool is_hiding; /* listings do not contain the machines' places */
    struct provision_pool pool;
};

#define TEST(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
extern const struct cloud_driver_ops rig_ops;
struct cloud_instance *rig_machine(struct fixture *f, const char *token);
struct cloud_instance *rig_add_machine(struct fixture *f, const char *token);
void rig_answer(struct fixture *f, struct call *c);
void rig_settle(struct fixture *f);
void rig_pass(struct fixture *f, int64_t ms);
int rig_setup(void **state);
int rig_teardown(void **state);
void rig_restart(struct fixture *f);
size_t rig_count(const struct fixture *f, enum call_kind kind);
struct call *rig_last(struct fixture *f, enum call_kind kind);
struct instance *rig_instance(struct fixture *f, int64_t id);
void rig_demand(struct fixture *f);
void rig_end(struct fixture *f, int64_t id);
struct provision_stats rig_stats(const struct fixture *f);

#endif
