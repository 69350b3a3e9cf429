/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/db/faulty_vfs.h"
#include "tests/db/util.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <string.h>

struct faulty_file {
    sqlite3_file base;
    sqlite3_file *real; /* the memory behind this struct */
};

struct faulty_plan faulty_plan;
static sqlite3_vfs *real_vfs;

static bool fails(enum faulty_op op)
{
    faulty_plan.seen[op]++;
    return faulty_plan.fail_at[op] > 0 && --faulty_plan.fail_at[op] == 0;
}

static sqlite3_file *real(sqlite3_file *f)
{
    return ((struct faulty_file *)f)->real;
}

static int f_close(sqlite3_file *f)
{
    return real(f)->pMethods->xClose(real(f));
}

static int f_read(sqlite3_file *f, void *p, int n, sqlite3_int64 at)
{
    return real(f)->pMethods->xRead(real(f), p, n, at);
}

static int f_write(sqlite3_file *f, const void *p, int n, sqlite3_int64 at)
{
    bool fault = fails(FAULTY_WRITE);
    int code = real(f)->pMethods->xWrite(real(f), p, fault ? n / 2 : n, at);
    if (!fault)
        return code;
    errno = faulty_plan.errnum;
    return faulty_plan.code[FAULTY_WRITE];
}

static int f_truncate(sqlite3_file *f, sqlite3_int64 size)
{
    return real(f)->pMethods->xTruncate(real(f), size);
}

static int f_sync(sqlite3_file *f, int flags)
{
    if (!fails(FAULTY_SYNC))
        return real(f)->pMethods->xSync(real(f), flags);
    errno = faulty_plan.errnum;
    return faulty_plan.code[FAULTY_SYNC];
}

static int f_size(sqlite3_file *f, sqlite3_int64 *size)
{
    return real(f)->pMethods->xFileSize(real(f), size);
}

static int f_lock(sqlite3_file *f, int level)
{
    return real(f)->pMethods->xLock(real(f), level);
}

static int f_unlock(sqlite3_file *f, int level)
{
    return real(f)->pMethods->xUnlock(real(f), level);
}

static int f_check_lock(sqlite3_file *f, int *out)
{
    return real(f)->pMethods->xCheckReservedLock(real(f), out);
}

static int f_control(sqlite3_file *f, int op, void *arg)
{
    return real(f)->pMethods->xFileControl(real(f), op, arg);
}

static int f_sector_size(sqlite3_file *f)
{
    return real(f)->pMethods->xSectorSize(real(f));
}

static int f_traits(sqlite3_file *f)
{
    return real(f)->pMethods->xDeviceCharacteristics(real(f));
}

static int f_shm_map(sqlite3_file *f, int region, int size, int extend, void volatile **p)
{
    if (!extend || !fails(FAULTY_SHM))
        return real(f)->pMethods->xShmMap(real(f), region, size, extend, p);
    errno = faulty_plan.errnum;
    return faulty_plan.code[FAULTY_SHM];
}

static int f_shm_lock(sqlite3_file *f, int offset, int n, int flags)
{
    return real(f)->pMethods->xShmLock(real(f), offset, n, flags);
}

static void f_shm_barrier(sqlite3_file *f)
{
    real(f)->pMethods->xShmBarrier(real(f));
}

static int f_shm_unmap(sqlite3_file *f, int delete_flag)
{
    return real(f)->pMethods->xShmUnmap(real(f), delete_flag);
}

static const sqlite3_io_methods methods = {2, f_close, f_read, f_write, f_truncate, f_sync, f_size,
    f_lock, f_unlock, f_check_lock, f_control, f_sector_size, f_traits, f_shm_map, f_shm_lock,
    f_shm_barrier, f_shm_unmap, NULL, NULL};

static int v_open(sqlite3_vfs *v, const char *name, sqlite3_file *file, int flags, int *out_flags)
{
    (void)v;
    struct faulty_file *f = (struct faulty_file *)file;
    f->base.pMethods = NULL;
    f->real = (sqlite3_file *)(f + 1);
    int code = real_vfs->xOpen(real_vfs, name, f->real, flags, out_flags);
    if (code == SQLITE_OK)
        f->base.pMethods = &methods;
    return code;
}

static int v_last_error(sqlite3_vfs *v, int n, char *text)
{
    (void)v;
    return faulty_plan.errnum ? faulty_plan.errnum : real_vfs->xGetLastError(real_vfs, n, text);
}

static sqlite3_vfs vfs;

int faulty_setup(void **state)
{
    faulty_plan = (struct faulty_plan){0};
    real_vfs = sqlite3_vfs_find(NULL);
    /* foreign files use the real VFS's functions, which ignore the vfs argument */
    vfs = *real_vfs;
    vfs.zName = "faulty";
    vfs.pNext = NULL;
    vfs.szOsFile = (int)sizeof(struct faulty_file) + real_vfs->szOsFile;
    vfs.xOpen = v_open;
    vfs.xGetLastError = v_last_error;
    sqlite3_vfs_register(&vfs, 1);
    return util_setup(state);
}

int faulty_teardown(void **state)
{
    sqlite3_vfs_unregister(&vfs);
    sqlite3_vfs_register(real_vfs, 1);
    return util_teardown(state);
}
