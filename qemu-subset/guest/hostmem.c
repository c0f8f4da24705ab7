/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory backends. */
#include "guest/hostmem.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define TYPE_RAM "memory-backend-ram"
#define TYPE_FILE "memory-backend-file"
#define TYPE_MEMFD "memory-backend-memfd"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

struct HostMemory {
    Object obj;
    uint64_t size;
    bool size_set, share, merge, dump, prealloc, reserve, seal;
    int policy;
    char *mem_path;
    uint8_t *ptr; /* NULL until complete */
    size_t mapped;
    int fd;
};

#define HOSTMEM(obj) ((HostMemory *)(obj))

uint8_t *hostmem_ptr(const HostMemory *m)
{
    return m->ptr;
}

uint64_t hostmem_size(const HostMemory *m)
{
    return m->size;
}

static const char *ram_name(const HostMemory *m)
{
    return m->obj.name ? m->obj.name : m->obj.type->name;
}

json_t *hostmem_query(HostMemory *m)
{
    return json_pack("{s:s, s:I, s:b, s:b, s:b, s:b, s:b, s:[], s:s}", "id", ram_name(m), "size",
                     (json_int_t)m->size, "merge", m->merge, "dump", m->dump, "prealloc", m->prealloc, "share",
                     m->share, "reserve", m->reserve, "host-nodes", "policy", "default");
}

/* --- Properties; all are fixed once the memory is there --- */

static bool changeable(Object *obj, const ObjectProperty *p, Error **errp)
{
    if (HOSTMEM(obj)->ptr) {
        error_setg(errp, "cannot change property %s of %s ", p->name, obj->type->name);
        return false;
    }
    return true;
}

static bool set_size(Object *obj, const ObjectProperty *p, json_t *value, Error **errp)
{
    uint64_t size = (uint64_t)json_integer_value(value);

    if (!changeable(obj, p, errp)) {
        return false;
    }
    if (!size) {
        error_setg(errp, "property '%s' of %s doesn't take value '0'", p->name, obj->type->name);
        return false;
    }
    HOSTMEM(obj)->size = size;
    HOSTMEM(obj)->size_set = true;
    return true;
}

static bool set_flag(Object *obj, const ObjectProperty *p, json_t *value, Error **errp)
{
    return changeable(obj, p, errp) && object_set_bool(obj, p, value, errp);
}

static bool set_policy(Object *obj, const ObjectProperty *p, json_t *value, Error **errp)
{
    return changeable(obj, p, errp) && object_set_enum(obj, p, value, errp);
}

static bool set_path(Object *obj, const ObjectProperty *p, json_t *value, Error **errp)
{
    return changeable(obj, p, errp) && object_set_string(obj, p, value, errp);
}

static const char *const policies[] = {"default", NULL};

#define FLAG(pname, member, text)                                                                  \
    {                                                                                              \
        .name = pname, .kind = PROP_BOOL, .get = object_get_bool, .set = set_flag,                 \
        .offset = offsetof(HostMemory, member), .description = text,                               \
    }

static const ObjectProperty base_properties[] = {
    {.name = "size", .kind = PROP_SIZE, .type = "int", .get = object_get_uint64, .set = set_size,
     .required = true, .offset = offsetof(HostMemory, size), .description = "Size of the memory region (ex: 500M)"},
    FLAG("share", share, "Mark the memory as private to QEMU or shared"),
    FLAG("merge", merge, "Mark memory as mergeable"),
    FLAG("dump", dump, "Set to 'off' to exclude from core dump"),
    FLAG("prealloc", prealloc, "Preallocate memory"),
    FLAG("reserve", reserve, "Reserve swap space (or huge pages) if applicable"),
    {.name = "policy", .kind = PROP_ENUM, .type = "HostMemPolicy", .values = policies, .get = object_get_enum,
     .set = set_policy, .offset = offsetof(HostMemory, policy), .description = "Set the NUMA policy"},
    {0},
};

static const ObjectProperty file_properties[] = {
    {.name = "mem-path", .kind = PROP_STRING, .required = true, .get = object_get_string, .set = set_path,
     .offset = offsetof(HostMemory, mem_path)},
    {0},
};

static const ObjectProperty memfd_properties[] = {
    FLAG("seal", seal, "Seal growing & shrinking"),
    {0},
};

/* --- Files behind the memory; -1 with @errp set --- */

static int open_memfd(HostMemory *m, Error **errp)
{
    int fd = memfd_create(TYPE_MEMFD, MFD_CLOEXEC | (m->seal ? MFD_ALLOW_SEALING : 0));

    if (fd < 0) {
        error_setg_errno(errp, errno, "failed to create memfd");
        return -1;
    }
    if (ftruncate(fd, (off_t)m->size) < 0 ||
        (m->seal && fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)) {
        error_setg_errno(errp, errno, "failed to set up memfd of %" G_GUINT64_FORMAT " bytes", m->size);
        close(fd);
        return -1;
    }
    return fd;
}

/* A directory gets a file that vanishes with the process. */
static int open_path(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);

    if (fd < 0 && errno == EISDIR) {
        g_autofree char *name = g_strdup_printf("%s/qemu_back_mem.XXXXXX", path);
        fd = g_mkstemp_full(name, O_RDWR | O_CLOEXEC, 0600);
        if (fd >= 0) {
            unlink(name);
        }
    }
    return fd;
}

static int open_file(HostMemory *m, Error **errp)
{
    struct stat st;

    if (!m->mem_path || !*m->mem_path) {
        error_setg(errp, "Parameter 'mem-path' is missing");
        return -1;
    }
    int fd = open_path(m->mem_path);
    if (fd < 0 || fstat(fd, &st) < 0) {
        error_setg_errno(errp, errno, "can't open backing store %s for guest RAM", m->mem_path);
        if (fd >= 0) {
            close(fd);
        }
        return -1;
    }
    if (S_ISREG(st.st_mode) && st.st_size && (uint64_t)st.st_size < m->size) {
        error_setg(errp, "backing store size 0x%" G_GINT64_MODIFIER "x does not match 'size' option 0x%" G_GINT64_MODIFIER "x",
                   (guint64)st.st_size, m->size);
        close(fd);
        return -1;
    }
    if (S_ISREG(st.st_mode) && !st.st_size && ftruncate(fd, (off_t)m->size) < 0) {
        error_setg_errno(errp, errno, "can't extend backing store %s for guest RAM", m->mem_path);
        close(fd);
        return -1;
    }
    return fd;
}

static bool map(HostMemory *m, int flags, Error **errp)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t rounded = (m->size + page - 1) & ~(page - 1);

    flags |= m->share ? MAP_SHARED : MAP_PRIVATE;
    flags |= m->reserve ? 0 : MAP_NORESERVE;
    void *p = MAP_FAILED;
    errno = ENOMEM;
    if (rounded >= m->size && rounded <= PTRDIFF_MAX) {
        p = mmap(NULL, rounded, PROT_READ | PROT_WRITE, flags, m->fd, 0);
    }
    if (p == MAP_FAILED) {
        error_setg_errno(errp, errno, "cannot set up guest memory '%s'", ram_name(m));
        return false;
    }
    /* Advice: a kernel without one of these still gives working memory. */
    if (m->merge) {
        madvise(p, rounded, MADV_MERGEABLE);
    }
    if (!m->dump) {
        madvise(p, rounded, MADV_DONTDUMP);
    }
    if (m->prealloc && madvise(p, rounded, MADV_POPULATE_WRITE) < 0) {
        error_setg_errno(errp, errno, "preallocating memory failed");
        munmap(p, rounded);
        return false;
    }
    m->ptr = p;
    m->mapped = rounded;
    return true;
}

static bool complete(Object *obj, Error **errp)
{
    HostMemory *m = HOSTMEM(obj);
    bool anonymous = object_is_a(obj, TYPE_RAM);

    if (!m->size_set) {
        error_setg(errp, "Parameter 'size' is missing");
        return false;
    }
    if (!anonymous) {
        if (m->size > INT64_MAX) {
            error_setg_errno(errp, ENOMEM, "cannot set up guest memory '%s'", ram_name(m));
            return false;
        }
        m->fd = object_is_a(obj, TYPE_FILE) ? open_file(m, errp) : open_memfd(m, errp);
        if (m->fd < 0) {
            return false;
        }
    }
    return map(m, anonymous ? MAP_ANONYMOUS : 0, errp);
}

static void init(Object *obj)
{
    HOSTMEM(obj)->fd = -1;
    HOSTMEM(obj)->merge = true;
    HOSTMEM(obj)->dump = true;
    HOSTMEM(obj)->reserve = true;
}

static void memfd_init(Object *obj)
{
    HOSTMEM(obj)->share = true;
    HOSTMEM(obj)->seal = true;
}

static void finalize(Object *obj)
{
    HostMemory *m = HOSTMEM(obj);

    if (m->ptr) {
        munmap(m->ptr, m->mapped);
    }
    if (m->fd >= 0) {
        close(m->fd);
    }
    g_free(m->mem_path);
}

static const char *const interfaces[] = {"user-creatable", NULL};

static const ObjectType types[] = {
    {.name = TYPE_MEMORY_BACKEND, .parent = "object", .size = sizeof(HostMemory), .abstract = true,
     .interfaces = interfaces, .properties = base_properties, .init = init, .finalize = finalize,
     .complete = complete},
    {.name = TYPE_RAM, .parent = TYPE_MEMORY_BACKEND},
    {.name = TYPE_FILE, .parent = TYPE_MEMORY_BACKEND, .properties = file_properties},
    {.name = TYPE_MEMFD, .parent = TYPE_MEMORY_BACKEND, .properties = memfd_properties, .init = memfd_init},
};

void hostmem_register_types(void)
{
    for (unsigned int i = 0; i < G_N_ELEMENTS(types); i++) {
        object_register_type(&types[i]);
    }
}
