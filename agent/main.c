/* SPDX-License-Identifier: Apache-2.0
 *
 * belay-agent: runs the node agent, or one of its subcommands: host, and those that the agent
 * starts itself (criu-*, holder).
 */
#include "agent/agent.h"
#include "agent/criu/criu_rights.h"
#include "agent/criu/criu_sandbox.h"
#include "agent/criu/criu_trial.h"
#include "agent/checks.h"
#include "agent/host.h"
#include "agent/supervisor/holder.h"
#include "base/log.h"
#include "base/mem.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "Usage: belay-agent --config FILE [--check] [--log-level LEVEL]\n"
    "       belay-agent host [--dir DIR]\n"
    "Runs the jobs that belayd places on this node. host: serves one request of a belayd that "
    "reaches this\n"
    "machine over ssh, on standard input.\n"
    "\n"
    "  -c, --config FILE      the configuration (YAML); it holds a secret: mode 600\n"
    "      --check            check the configuration and end\n"
    "      --log-level LEVEL  debug, info (default), warn, error\n"
    "  -h, --help             this text\n"
    "  -V, --version          the version\n"
    "\n"
    "SIGTERM ends the agent; running tasks continue and are taken over by the next one. While the\n"
    "machine shuts down or a reclaim is announced, they are saved and ended first.\n";

static int run_loop(struct config *config)
{
    uv_loop_t loop;
    setenv("UV_THREADPOOL_SIZE", "16",
        0); /* a dump or a large directory occupies a thread; programs wait for snapshots */
    uv_loop_init(&loop);
    return agent_run(&loop, config);
}

static int run_agent(const char *path, bool only_check)
{
    struct config config;
    struct err e;
    int rc = 0;
    if (config_read(path, &config, &e)) {
        fprintf(stderr, "belay-agent: %s\n", e.text);
        return 2;
    }
    if (only_check && agent_check_node(&config, &e)) {
        fprintf(stderr, "belay-agent: %s: %s\n", path, e.text);
        rc = 2;
    } else if (only_check) {
        puts("the configuration is fine");
    } else {
        rc = run_loop(&config);
    }
    config_deinit(&config);
    return rc;
}

static int bad_usage(const char *what)
{
    fprintf(stderr, "belay-agent: %s\n%s", what, usage);
    return 2;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"config", required_argument, NULL, 'c'},
        {"check", no_argument, NULL, 'k'}, {"log-level", required_argument, NULL, 'l'},
        {"help", no_argument, NULL, 'h'}, {"version", no_argument, NULL, 'V'}, {NULL, 0, NULL, 0}};
    const char *config = NULL;
    bool only_check = false;
    enum log_level level = LOG_INFO;
    log_init("belay-agent", level);
    mem_return_large(); /* saves and restores have buffers and lists of megabytes */
    if (argc >= 2 && strcmp(argv[1], "criu-dump") == 0)
        return criu_sandbox_dump_main(argc, argv);
    if (argc == 2 && strcmp(argv[1], "criu-files") == 0)
        return criu_sandbox_files_main();
    if (argc == 2 && strcmp(argv[1], "criu-give") == 0)
        return criu_sandbox_give_main();
    if (argc == 2 && strcmp(argv[1], "criu-rights") == 0)
        return criu_rights_main();
    if (argc >= 2 && strcmp(argv[1], "criu-trial") == 0)
        return criu_trial_main(argc, argv);
    if (argc >= 2 && strcmp(argv[1], "criu-subject") == 0)
        return criu_subject_main(argc, argv);
    if (argc >= 2 && strcmp(argv[1], "host") == 0)
        return host_main(argc - 2, argv + 2);
    if (argc == 3 && strcmp(argv[1], "holder") == 0)
        return holder_main(argv[2]);
    for (int c; (c = getopt_long(argc, argv, "c:hV", options, NULL)) != -1;) {
        switch (c) {
        case 'c':
            config = optarg;
            break;
        case 'l':
            if (log_level_from_name(optarg, &level))
                return bad_usage("--log-level: expected debug, info, warn or error");
            log_set_level(level);
            break;
        case 'k':
            only_check = true;
            break;
        case 'h':
            fputs(usage, stdout);
            return 0;
        case 'V':
            puts("belay-agent " BELAY_VERSION);
            return 0;
        default:
            return bad_usage("not understood");
        }
    }
    if (!config)
        return bad_usage("--config is missing");
    if (optind < argc)
        return bad_usage("too many arguments");
    return run_agent(config, only_check);
}
