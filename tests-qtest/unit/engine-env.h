/* SPDX-License-Identifier: GPL-2.0-or-later */
/* For tests and benches of engines: one engine under one monitor with a file, and requests that are checked to end once. */
#ifndef UNIT_ENGINE_ENV_H
#define UNIT_ENGINE_ENV_H

#include "engine/engine.h"

#include <glib.h>

/* What one run of a case uses. */
typedef struct EnvConfig {
    EngineKind kind;
    AioMonitor monitor;
    const char *dir; /* where the file is made */
    const char *fs;  /* its name in test names */
    bool direct;
    bool registered; /* with the ring, as far as the kernel can: the file, and what env_buffer() gives */
} EnvConfig;

typedef struct Env {
    const EnvConfig *cfg;
    AioContext *ctx;
    EngineFile file;
    char *path;
    unsigned int live;    /* submitted and not ended */
    unsigned int in_done; /* nesting of done() */
    bool in_submit;
    unsigned int ended;
} Env;

typedef struct Req {
    EngineRequest er;
    Env *env;
    struct iovec one;
    int ends;
    void (*after)(struct Req *r); /* called from done(), may be NULL */
} Req;

/* The calling thread gets a context with @max_events (0: default), and an empty file. NULL: skipped, as @cfg cannot be had. */
Env *env_new(const EnvConfig *cfg, unsigned int max_events);
void env_free(Env *env);
/* The file's descriptor is to be @fd from now on. */
void env_set_fd(Env *env, int fd);
/* Another file of the same properties. */
EngineFile env_other_file(const Env *env, int fd);

void req_init(Req *r, Env *env, EngineOp op, uint64_t offset, void *buf, size_t bytes);
void req_init_iov(Req *r, Env *env, EngineOp op, uint64_t offset, const struct iovec *iov,
                  unsigned int niov);
/* Returns true if it is queued; false: over at once, with the result in ->er.ret. */
bool req_submit(Req *r);
/* Poll until nothing is live. */
void env_wait(Env *env);
/* Submit, wait, return the result. */
int req_run(Req *r);
int env_run(Env *env, EngineOp op, uint64_t offset, void *buf, size_t bytes, unsigned int flags);

/* Memory aligned to 4096, all 0xee; and its end. env_fill(): a pattern that depends on @seed and the position. */
void *env_buffer(size_t bytes);
void env_buffer_free(void *p);
void env_fill(void *buf, size_t bytes, unsigned int seed);

#endif
