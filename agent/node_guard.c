/* SPDX-License-Identifier: Apache-2.0
 *
 * Routing rules, in the order in which the kernel evaluates them (rtnetlink(7), linux/fib_rules.h).
 * For each address:
 *
 *     1  from this machine, uid 0         skip these rules
 *     2  TCP port 53                      skip these rules
 *     3  TCP                              prohibited
 *
 * Rule 0 is the kernel's own, for local addresses: a metadata service at a local address cannot be
 * guarded in this way.
 */
#include "agent/node_guard.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/fib_rules.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define ANSWER_S 5
#define HTTP_PORT 80
#define DNS_PORT 53
#define SOMEBODY 65534 /* any uid other than root's */

/* Every machine guards the addresses of all providers, as none of them is used for anything
 * else. */
static const struct service {
    const char *address;
    int family;
} services[] = {
    {"169.254.169.254", AF_INET}, /* AWS, Azure, Google, OpenStack */
    {"168.63.129.16", AF_INET},   /* Azure's wire server: certificates and settings of extensions */
    {"fd00:ec2::254", AF_INET6},  /* AWS */
    {"fd20:ce::254", AF_INET6},   /* Google */
};

struct request {
    struct nlmsghdr head;
    union {
        struct fib_rule_hdr rule;
        struct rtmsg route;
    } of;
    char attributes[256];
};

static void add(struct request *r, unsigned short type, const void *value, size_t n)
{
    struct rtattr *a = (struct rtattr *)((char *)r + NLMSG_ALIGN(r->head.nlmsg_len));
    a->rta_type = type;
    a->rta_len = (unsigned short)RTA_LENGTH(n);
    memcpy(RTA_DATA(a), value, n);
    r->head.nlmsg_len = NLMSG_ALIGN(r->head.nlmsg_len) + RTA_ALIGN(a->rta_len);
}

static unsigned char add_address(struct request *r, unsigned short type, const struct service *s)
{
    unsigned char address[sizeof(struct in6_addr)];
    size_t n = s->family == AF_INET ? sizeof(struct in_addr) : sizeof(struct in6_addr);
    inet_pton(s->family, s->address, address);
    add(r, type, address, n);
    return (unsigned char)(8 * n);
}

/* Sends the request and receives the reply into *r. Returns 0 or an errno, which may be the
 * kernel's answer. */
static int ask(int fd, struct request *r, size_t size)
{
    if (send(fd, r, r->head.nlmsg_len, 0) < 0)
        return errno;
    ssize_t n = recv(fd, r, size, 0);
    if (n < 0)
        return errno;
    if (!NLMSG_OK(&r->head, (size_t)n))
        return EPROTO;
    if (r->head.nlmsg_type != NLMSG_ERROR)
        return 0;
    return -((const struct nlmsgerr *)NLMSG_DATA(&r->head))->error;
}

enum rule { RULE_ROOT = 1, RULE_DNS, RULE_PROHIBIT };

static int add_rule(int fd, const struct service *s, enum rule which)
{
    struct request r = {.head = {.nlmsg_len = NLMSG_LENGTH(sizeof(r.of.rule)),
                            .nlmsg_type = RTM_NEWRULE,
                            .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL},
        .of.rule = {.family = (unsigned char)s->family,
            .action = which == RULE_PROHIBIT ? FR_ACT_PROHIBIT : FR_ACT_TO_TBL,
            .table = which == RULE_PROHIBIT ? RT_TABLE_UNSPEC : RT_TABLE_MAIN}};
    const struct fib_rule_uid_range root = {.start = 0, .end = 0};
    const struct fib_rule_port_range dns = {.start = DNS_PORT, .end = DNS_PORT};
    const uint32_t priority = which;
    const unsigned char tcp = IPPROTO_TCP;
    r.of.rule.dst_len = add_address(&r, FRA_DST, s);
    add(&r, FRA_PRIORITY, &priority, sizeof(priority));
    if (which == RULE_ROOT) {
        add(&r, FRA_IIFNAME, "lo",
            /* forwarded packets come from another interface, and would count as root's */
            sizeof("lo"));
        add(&r, FRA_UID_RANGE, &root, sizeof(root));
    } else {
        add(&r, FRA_IP_PROTO, &tcp, sizeof(tcp));
    }
    if (which == RULE_DNS)
        add(&r, FRA_DPORT_RANGE, &dns, sizeof(dns));
    int rc = ask(fd, &r, sizeof(r));
    return rc == EEXIST ? 0 : rc;
}

/* Whether the kernel would refuse a connection of a user other than root. */
static bool is_closed(int fd, const struct service *s)
{
    struct request r = {.head = {.nlmsg_len = NLMSG_LENGTH(sizeof(r.of.route)),
                            .nlmsg_type = RTM_GETROUTE,
                            .nlmsg_flags = NLM_F_REQUEST},
        .of.route = {.rtm_family = (unsigned char)s->family}};
    const uint32_t uid = SOMEBODY;
    const uint16_t port = htons(HTTP_PORT);
    const unsigned char tcp = IPPROTO_TCP;
    r.of.route.rtm_dst_len = add_address(&r, RTA_DST, s);
    add(&r, RTA_UID, &uid, sizeof(uid));
    add(&r, RTA_IP_PROTO, &tcp, sizeof(tcp));
    add(&r, RTA_DPORT, &port, sizeof(port));
    int rc = ask(fd, &r, sizeof(r));
    return rc == EACCES || rc == ENETUNREACH || rc == EHOSTUNREACH ||
           (rc == 0 && r.head.nlmsg_type == RTM_NEWROUTE &&
               (r.of.route.rtm_type == RTN_PROHIBIT || r.of.route.rtm_type == RTN_UNREACHABLE));
}

static int guard(int fd, const struct service *s, struct err *e)
{
    for (enum rule which = RULE_ROOT; which <= RULE_PROHIBIT; which++) {
        int rc = add_rule(fd, s, which);
        if (s->family == AF_INET6 && (rc == EAFNOSUPPORT || rc == EOPNOTSUPP))
            return 0; /* no IPv6 */
        if (rc)
            return err_set(e, ERR_UNSUPPORTED,
                "setting a routing rule for the metadata service at %s: %s", s->address,
                strerror(rc));
    }
    if (!is_closed(fd, s))
        return err_set(e, ERR_UNSUPPORTED,
            "routing rules are set for the metadata service at %s, but users other than root still "
            "reach it",
            s->address);
    return 0;
}

int node_guard_metadata(struct err *e)
{
    const struct timeval patience = {.tv_sec = ANSWER_S};
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE), rc = 0;
    if (fd < 0)
        return err_set(e, ERR_UNSUPPORTED,
            "opening a netlink socket to guard the metadata service: %s", strerror(errno));
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    for (size_t i = 0; !rc && i < sizeof(services) / sizeof(*services); i++)
        rc = guard(fd, &services[i], e);
    close(fd);
    return rc;
}
