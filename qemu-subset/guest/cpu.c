/* SPDX-License-Identifier: GPL-2.0-or-later */
/* CPUs that run nothing: a test plays their part. Each has a thread, which clients list and pin as they do QEMU's. */
#include "base/signals.h"
#include "guest/machine-private.h"

#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef struct CpuState {
    DeviceState dev;
    unsigned int index;
    pthread_t thread;
    pthread_mutex_t lock; /* covers thread_id and stop */
    pthread_cond_t cond;
    int thread_id; /* 0 until the thread runs */
    bool stop;
} CpuState;

static GPtrArray *cpus;

static void *cpu_thread(void *opaque)
{
    CpuState *cpu = opaque;

    pthread_mutex_lock(&cpu->lock);
    cpu->thread_id = (int)syscall(SYS_gettid);
    pthread_cond_broadcast(&cpu->cond);
    while (!cpu->stop) {
        pthread_cond_wait(&cpu->cond, &cpu->lock);
    }
    pthread_mutex_unlock(&cpu->lock);
    return NULL;
}

/* The thread never runs anything, so the smallest stack does; signals are the main thread's. */
static int start_thread(CpuState *cpu)
{
    g_autofree char *name = g_strdup_printf("CPU %u/DUMMY", cpu->index);
    pthread_attr_t attr;
    sigset_t old;

    name[MIN(strlen(name), 15)] = 0;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 64 * 1024);
    signals_block(&old);
    int ret = pthread_create(&cpu->thread, &attr, cpu_thread, cpu);
    signals_restore(&old);
    pthread_attr_destroy(&attr);
    if (ret == 0) {
        pthread_setname_np(cpu->thread, name);
    }
    return ret;
}

static bool realize(DeviceState *dev, Error **errp)
{
    CpuState *cpu = (CpuState *)dev;
    int ret = start_thread(cpu);

    if (ret) {
        error_setg_errno(errp, ret, "cannot start the thread of CPU %u", cpu->index);
        return false;
    }
    pthread_mutex_lock(&cpu->lock);
    while (!cpu->thread_id) {
        pthread_cond_wait(&cpu->cond, &cpu->lock);
    }
    pthread_mutex_unlock(&cpu->lock);
    if (!cpus) {
        cpus = g_ptr_array_new();
    }
    g_ptr_array_add(cpus, cpu);
    return true;
}

static void unrealize(DeviceState *dev)
{
    CpuState *cpu = (CpuState *)dev;

    pthread_mutex_lock(&cpu->lock);
    cpu->stop = true;
    pthread_cond_broadcast(&cpu->cond);
    pthread_mutex_unlock(&cpu->lock);
    pthread_join(cpu->thread, NULL);
    g_ptr_array_remove(cpus, cpu);
    if (!cpus->len) {
        g_clear_pointer(&cpus, g_ptr_array_unref);
    }
}

static void init(Object *obj)
{
    CpuState *cpu = (CpuState *)obj;

    pthread_mutex_init(&cpu->lock, NULL);
    pthread_cond_init(&cpu->cond, NULL);
}

static void finalize(Object *obj)
{
    CpuState *cpu = (CpuState *)obj;

    pthread_mutex_destroy(&cpu->lock);
    pthread_cond_destroy(&cpu->cond);
}

bool machine_create_cpu(unsigned int index, Error **errp)
{
    CpuState *cpu = (CpuState *)device_new(TYPE_QEMU64_CPU);

    cpu->index = index;
    return device_realize_as(&cpu->dev, NULL, NULL, NULL, errp);
}

void machine_destroy_cpus(void)
{
    while (cpus) {
        CpuState *cpu = g_ptr_array_index(cpus, cpus->len - 1);
        device_unrealize(&cpu->dev);
    }
}

int machine_cpu_thread_id(unsigned int index, char **qom_path)
{
    CpuState *cpu = g_ptr_array_index(cpus, index);

    *qom_path = object_path(&cpu->dev.obj);
    return cpu->thread_id;
}

static const DeviceClass cpu_class = {
    .category = "CPU", .not_hotpluggable = true, .realize = realize, .unrealize = unrealize};

static const ObjectType types[] = {
    {.name = "cpu", .parent = TYPE_DEVICE, .size = sizeof(CpuState), .abstract = true, .init = init,
     .finalize = finalize, .klass = &cpu_class},
    {.name = "x86_64-cpu", .parent = "cpu", .abstract = true},
    {.name = TYPE_QEMU64_CPU, .parent = "x86_64-cpu"},
};

void cpu_register_types(void)
{
    for (unsigned int i = 0; i < G_N_ELEMENTS(types); i++) {
        object_register_type(&types[i]);
    }
}
