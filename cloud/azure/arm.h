/* SPDX-License-Identifier: Apache-2.0
 *
 * Azure Resource Manager and the Retail Prices API, without any I/O: requests as paths and JSON
 * bodies, replies parsed from bytes.
 *
 * A machine is three resources, whose names are derived from the token of its launch: NAME,
 * NAME-nic and NAME-os. All carry the tags belay:cluster and belay:instance (the disk has the
 * machine's), and the latter two are marked for deletion with the machine. A network interface or
 * disk that outlives its machine all the same is a leftover, and is listed as an instance of its
 * own, under its name.
 *
 * A reply must be the JSON that was requested. HTML, truncated JSON or a malformed member is
 * ERR_INVALID, and the error says which. Refusals are classified by their code, wherever in the
 * error it is.
 */
#ifndef BELAY_CLOUD_AZURE_ARM_H
#define BELAY_CLOUD_AZURE_ARM_H

#include "base/buf.h"
#include "cloud/azure/azure.h"

#define ARM_REPLY_MAX (16 * 1024 * 1024)
#define ARM_URL_MAX 8192                  /* of an operation, a next page, a console log */
#define ARM_CONSOLE_MAX (4 * 1024 * 1024) /* of a console log; Azure keeps about 1 MiB */
#define ARM_TERMINATE_MAX 1000
/* bytes of a machine's name: its parts' names must fit in CLOUD_NAME_MAX */
#define ARM_NAME_MAX 59
#define ARM_CODE_MAX 96

#define ARM_TAG_CLUSTER "belay:cluster"
#define ARM_TAG_INSTANCE "belay:instance"

enum arm_part { ARM_VM, ARM_NIC, ARM_DISK };

/* ---- requests: paths (with their query, relative to the endpoint) and bodies, appended to out */

/* ERR_CONFIG: a setting of the pool that cannot be sent. */
int arm_check_machine(const struct azure_machine *m, struct err *e);

/* The machine's name is its launch token. */
void arm_part_name(const char *name, enum arm_part part, char *out, size_t size);
/* The kind of part that a listed name belongs to; a name without a known suffix is a machine's. */
enum arm_part arm_part_of(const char *name);

/* For PUT, GET and DELETE; full_name as arm_part_name returns it. */
void arm_path(
    const struct azure_machine *m, enum arm_part part, const char *full_name, struct buf *out);
void arm_path_vm_status(const struct azure_machine *m, const char *name, struct buf *out);
/* Ends the machine at once, without a shutdown of the guest: it has been notified in other ways. */
void arm_path_delete_vm(const struct azure_machine *m, const char *name, struct buf *out);
/* The machines of the resource group, or of the whole subscription; the tagged resources, and the
 * power states, of the subscription. */
void arm_path_list_vms(const struct azure_machine *m, bool all, struct buf *out);
void arm_path_list_tagged(const struct azure_machine *m, const char *cluster, struct buf *out);
/* The disks of the resource group, or of the whole subscription. */
void arm_path_list_disks(const struct azure_machine *m, bool all, struct buf *out);
void arm_path_list_power(const struct azure_machine *m, struct buf *out);
/* POST: returns where the machine's console log can be read for a few minutes. */
void arm_path_console(const struct azure_machine *m, const char *name, struct buf *out);

void arm_build_nic(const struct cloud_launch *l, const struct azure_machine *m, struct buf *out);
/* The same launch gives the same bytes. ERR_CONFIG. out contains the user data: wipe it. */
int arm_build_vm(
    const struct cloud_launch *l, const struct azure_machine *m, struct buf *out, struct err *e);

/* For the prices API. */
void arm_path_prices(const char *region, const char *type, struct buf *out);

/* ---- replies ---- */

/* For GET or PUT of a machine. */
int arm_parse_vm(const char *body, size_t n, struct cloud_instance *ret_instance, struct err *e);

/* provisioningState of any resource. *ret_done: it is neither being created nor changed. For a
 * failed resource the error is from its instanceView, else ERR_UNAVAILABLE. */
int arm_parse_progress(const char *body, size_t n, bool *ret_done, struct err *e);

/* The reply of an Azure-AsyncOperation. *ret_done is false while it runs. A failed operation gives
 * its error (arm_parse_error). */
int arm_parse_operation(const char *body, size_t n, bool *ret_done, struct err *e);

/* One page each. *next receives the URL of the next page (ARM_URL_MAX + 1 bytes), "" after the
 * last. */

/* Adds the machines in region that carry the tag of a cluster; with `all`, others too, apart from
 * those of a form that is not known. */
int arm_parse_vms(const char *body, size_t n, const char *region, bool all,
    struct cloud_instances *list, char *next, struct err *e);
/* Adds the tagged network interfaces and disks of the resource group in region as leftovers: no
 * token, CLOUD_STOPPING. */
int arm_parse_tagged(const char *body, size_t n, const struct azure_machine *m, const char *region,
    struct cloud_instances *list, char *next, struct err *e);
/* Sets the power states of the machines in list. A deallocated machine was reclaimed: belay never
 * deallocates. */
int arm_parse_power(
    const char *body, size_t n, struct cloud_instances *list, char *next, struct err *e);
/* Adds the unattached disks in region; their names are GROUP/NAME. */
int arm_parse_disks(const char *body, size_t n, const char *region, struct cloud_volumes *list,
    char *next, struct err *e);
/* Prices for all zones (zone ""). Meters of Windows, dedicated hosts and low priority are left out.
 */
int arm_parse_prices(const char *body, size_t n, const char *region, const char *type,
    struct cloud_prices *list, char *next, struct err *e);

/* The URL of a machine's serial console log (ARM_URL_MAX + 1 bytes); "" if there is none yet.
 * Anyone who has the URL can read the log: it is a secret, and never in an error. ERR_INVALID if it
 * does not pass arm_url_is_blob. */
int arm_parse_console(
    const char *body, size_t n, const char *endpoint, char *ret_url, struct err *e);

/* A refusal, or a failed operation (as status 500). Always fills e; its text has the code, the
 * message and what to do. */
enum arm_remedy { ARM_REMEDY_NONE, ARM_REMEDY_TOKEN };
int arm_parse_error(
    int status, const char *body, size_t n, enum arm_remedy *ret_remedy, struct err *e);
/* The same for a bare code, in the status of a failed machine. */
int arm_refusal(const char *code, const char *message, struct err *e);

/* Whether url belongs to endpoint (as cloud_endpoint returns it): only such URLs get a token. */
bool arm_url_is_ours(const char *url, const char *endpoint);
/* Whether url is in Azure's blob storage, over https: the only place from which a console log is
 * read. If endpoint is on this machine (plain http): whether it is at that endpoint. Such URLs get
 * no token. */
bool arm_url_is_blob(const char *url, const char *endpoint);

#endif
