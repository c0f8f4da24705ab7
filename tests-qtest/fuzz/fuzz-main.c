/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Drives a fuzz target without libFuzzer, in any build: every input of the corpus as it is, then a fixed number of mutated
 * ones from a fixed seed. It does not look for coverage; it is there so that tests run the targets everywhere.
 */
#include "fuzz-input.h"

#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SIZE 4096

static GRand *prng;

#pragma weak LLVMFuzzerInitialize
#pragma weak LLVMFuzzerCustomMutator

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size)
{
    for (unsigned int n = 1 + g_rand_int(prng) % 8; n; n--) {
        size_t at = size ? g_rand_int(prng) % size : 0, len = 1 + g_rand_int(prng) % 16;

        switch (g_rand_int(prng) % 4) {
        case 0: /* insert */
            len = MIN(len, max_size - size);
            memmove(data + at + len, data + at, size - at);
            for (size_t i = 0; i < len; i++) {
                data[at + i] = (uint8_t)g_rand_int(prng);
            }
            size += len;
            break;
        case 1: /* remove */
            len = MIN(len, size - at);
            memmove(data + at, data + at + len, size - at - len);
            size -= len;
            break;
        case 2: /* repeat a piece elsewhere */
            if (size) {
                size_t from = g_rand_int(prng) % size;
                memmove(data + at, data + from, MIN(len, size - MAX(at, from)));
            }
            break;
        default:
            if (size) {
                data[at] = (uint8_t)g_rand_int(prng);
            }
        }
    }
    return size;
}

static gint by_name(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void load(GPtrArray *corpus, const char *path)
{
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    char *data;
    gsize len;

    if (!dir) {
        if (!g_file_get_contents(path, &data, &len, NULL)) {
            fprintf(stderr, "%s: cannot be read\n", path);
            exit(1);
        }
        g_ptr_array_add(corpus, g_bytes_new_take(data, len));
        return;
    }
    for (const char *name; (name = g_dir_read_name(dir));) {
        g_ptr_array_add(names, g_build_filename(path, name, NULL));
    }
    g_ptr_array_sort(names, by_name);
    for (guint i = 0; i < names->len; i++) {
        load(corpus, names->pdata[i]);
    }
}

static void run(const uint8_t *data, size_t size)
{
    /* Of its exact size, so that a sanitizer sees what reads past it. */
    g_autofree uint8_t *copy = g_memdup2(data, size);

    LLVMFuzzerTestOneInput(copy, size);
}

static void mutate_and_run(GPtrArray *corpus, unsigned int seed)
{
    static uint8_t buf[MAX_SIZE];
    gsize size = 0;

    if (corpus->len) {
        const void *from = g_bytes_get_data(corpus->pdata[g_rand_int(prng) % corpus->len], &size);
        size = MIN(size, MAX_SIZE);
        memcpy(buf, from, size);
    }
    size = LLVMFuzzerCustomMutator ? LLVMFuzzerCustomMutator(buf, size, MAX_SIZE, seed)
                                   : LLVMFuzzerMutate(buf, size, MAX_SIZE);
    run(buf, size);
}

int main(int argc, char **argv)
{
    g_autoptr(GPtrArray) corpus = g_ptr_array_new_with_free_func((GDestroyNotify)g_bytes_unref);
    unsigned int runs = 1000, seed = 1;

    if (LLVMFuzzerInitialize) {
        LLVMFuzzerInitialize(&argc, &argv);
    }
    for (int i = 1; i < argc; i++) {
        if (g_str_has_prefix(argv[i], "-runs=")) {
            runs = (unsigned int)atoi(argv[i] + 6);
        } else if (g_str_has_prefix(argv[i], "-seed=")) {
            seed = (unsigned int)atoi(argv[i] + 6);
        } else if (argv[i][0] != '-') {
            load(corpus, argv[i]);
        } else {
            fprintf(stderr, "usage: %s [-runs=N] [-seed=N] [FILE|FOLDER]...\n", argv[0]);
            return 2;
        }
    }
    prng = g_rand_new_with_seed(seed);
    for (guint i = 0; i < corpus->len; i++) {
        gsize size;
        const uint8_t *data = g_bytes_get_data(corpus->pdata[i], &size);
        run(data, size);
    }
    for (unsigned int i = 0; i < runs; i++) {
        mutate_and_run(corpus, g_rand_int(prng));
    }
    g_rand_free(prng);
    printf("%u inputs from the corpus and %u mutated ones\n", corpus->len, runs);
    return 0;
}
