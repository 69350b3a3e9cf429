/* SPDX-License-Identifier: Apache-2.0
 *
 * The program in the form that the verifier accepts (linux/bpf.h):
 *
 *     r2 = device type, r3 = major, r4 = minor
 *     if it is not a character device: allow
 *     for each denied device: if r3 and r4 match: refuse
 *     allow
 */
#include "base/uv/device_filter.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HEAD 5
#define EACH 4
#define TAIL 2
#define INSNS_MAX (HEAD + EACH * PROC_DEVICES_MAX + TAIL)

static struct bpf_insn load(unsigned to, size_t offset)
{
    return (struct bpf_insn){.code = BPF_LDX | BPF_W | BPF_MEM,
        .dst_reg = to & 15,
        .src_reg = BPF_REG_1,
        .off = (int16_t)offset};
}

static struct bpf_insn set(int32_t value)
{
    return (struct bpf_insn){
        .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = value};
}

static struct bpf_insn unless(unsigned reg, uint32_t value, size_t skip)
{
    return (struct bpf_insn){.code = BPF_JMP | BPF_JNE | BPF_K,
        .dst_reg = reg & 15,
        .off = (int16_t)skip,
        .imm = (int32_t)value};
}

static const struct bpf_insn leave = {.code = BPF_JMP | BPF_EXIT};

static size_t write_program(struct bpf_insn *p, const struct proc_device *denied, size_t n)
{
    size_t i = 0;
    p[i++] = load(BPF_REG_2, offsetof(struct bpf_cgroup_dev_ctx, access_type));
    p[i++] = load(BPF_REG_3, offsetof(struct bpf_cgroup_dev_ctx, major));
    p[i++] = load(BPF_REG_4, offsetof(struct bpf_cgroup_dev_ctx, minor));
    p[i++] = (struct bpf_insn){.code = BPF_ALU64 | BPF_AND | BPF_K,
        .dst_reg = BPF_REG_2,
        .imm = 0xffff}; /* keeps the device type; the upper 16 bits are the access */
    p[i++] = unless(BPF_REG_2, BPF_DEVCG_DEV_CHAR, EACH * n);
    for (size_t k = 0; k < n; k++) {
        p[i++] = unless(BPF_REG_3, denied[k].major, 3);
        p[i++] = unless(BPF_REG_4, denied[k].minor, 2);
        p[i++] = set(0);
        p[i++] = leave;
    }
    p[i++] = set(1);
    p[i++] = leave;
    return i;
}

int device_filter_attach(int cgroup_fd, const struct proc_device *denied, size_t n)
{
    struct bpf_insn program[INSNS_MAX];
    union bpf_attr a;
    if (n > PROC_DEVICES_MAX)
        return -E2BIG;
    memset(&a, 0, sizeof(a));
    a.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
    a.insns = (uint64_t)(uintptr_t)program;
    a.insn_cnt = (uint32_t)write_program(program, denied, n);
    /* no kernel function is called that requires another licence */
    a.license = (uint64_t)(uintptr_t) "Apache-2.0";
    int fd = (int)syscall(SYS_bpf, BPF_PROG_LOAD, &a, sizeof(a));
    if (fd < 0)
        return -errno;
    memset(&a, 0, sizeof(a));
    a.target_fd = (uint32_t)cgroup_fd;
    a.attach_bpf_fd = (uint32_t)fd;
    a.attach_type = BPF_CGROUP_DEVICE;
    a.attach_flags = BPF_F_ALLOW_MULTI;
    int rc = syscall(SYS_bpf, BPF_PROG_ATTACH, &a, sizeof(a)) < 0 ? -errno : 0;
    close(fd); /* the directory keeps a reference */
    return rc;
}
