/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Fuzz target: a hostile QMP client. The input is text; the mutator knows the names of commands and of arguments. */
#include "qtest-guest.h"

#include "qapi/qapi-commands.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Commands that would end the run, want a session, or write where the input says. */
static const char *const left_out[] = {"quit", "qmp_capabilities", "screendump", "pmemsave", "memsave", "chardev-add",
    "chardev-change", "system_powerdown", NULL};

static const char *const words[] = {
    "'id': ", "'d0'", "'d1'", "'d2'", "'d4'", "'node-name': ", "'disk0'", "'disk1'", "'disk2'", "'n1'", "'n2'", "'driver': ",
    "'null-co'", "'null-aio'", "'raw'", "'file': ", "'size': ", "512", "-1", "0", "18446744073709551615", "1e400", "true", "false",
    "null", "[]", "{}", "[{}]", "'path': ", "'/objects/io0'", "'/machine'", "'/machine/peripheral/d0'", "'/objects'", "'property': ",
    "'value': ", "'poll-max-ns'", "'aio-max-batch'", "'num-queues'", "'type'", "'realized'", "'iothread'", "'qom-type': ", "'io2'",
    "'memory-backend-ram'", "'virtio-blk-pci'", "'drive': ", "'device': ", "'command-line': ", "'info block'", "'info qtree'",
    "'block_resize disk0 1M'", "'typename': ", "'implements': ", "'read-only': ", "'cache': ", "'direct': ", "'offset': ",
    "'size': ", "'aio': ", "'threads'", "'locking': ", "'filename': ", "'execute': ", "'arguments': ", "'exec-oob': ", "'device-list'",
    "'iothread-vq-mapping': ", "'vqs': ", "'bus': ", "'pci.0'", "'addr': ", "'filter': ", "'options': ", "'queue': ", "'index': ", ", ",
    "{", "}", "[", "]",
};

static bool is_left_out(const char *name)
{
    return g_strv_contains(left_out, name);
}

static void on_request(void *opaque, json_t *request, Error *err)
{
    static const QmpDispatchOptions options = {.machine_ready = true, .allow_oob = true};

    if (!request) {
        json_decref(qmp_error_reply(err, NULL));
        return;
    }
    const char *name = json_string_value(json_object_get(request, "execute"));
    if (!name || !is_left_out(name)) {
        g_autoptr(json_t) answer = qmp_dispatch(qmp_commands, request, &options);
        if (answer) {
            g_autoptr(GString) text = qjson_to_string(answer, false);
            g_assert(text->len);
        }
        guest_settle(1);
    }
    json_decref(request);
}

/* --- After an input nothing of what it made is left --- */

static json_t *ask(const char *text)
{
    static const QmpDispatchOptions options = {.machine_ready = true};
    g_autoptr(json_t) request = qjson_parse(text, NULL);

    return qmp_dispatch(qmp_commands, request, &options);
}

static void remove_all(const char *list, const char *member, const char *command, const char *argument)
{
    g_autoptr(json_t) answer = ask(list);
    json_t *item;
    size_t i;

    json_array_foreach(json_object_get(answer, "return"), i, item) {
        json_t *name = json_object_get(item, member);
        if (json_is_string(name)) {
            json_t *request = json_pack("{s:s, s:{s:O}}", "execute", command, "arguments", argument, name);
            static const QmpDispatchOptions options = {.machine_ready = true};
            json_decref(qmp_dispatch(qmp_commands, request, &options));
            json_decref(request);
        }
    }
}

static bool is_own_device(const char *name)
{
    return strlen(name) == 2 && name[0] == 'd' && name[1] >= '0' && name[1] < '0' + GUEST_DEVICES;
}

/* Of the devices only those that were there from the beginning stay. */
static void eject_others(void)
{
    g_autoptr(json_t) answer = ask("{'execute': 'qom-list', 'arguments': {'path': '/machine/peripheral'}}");
    json_t *item;
    size_t i;
    bool any = false;

    json_array_foreach(json_object_get(answer, "return"), i, item) {
        const char *name = json_string_value(json_object_get(item, "name"));
        if (strcmp(name, "type") && !is_own_device(name)) {
            guest_qmp(NULL, "{'execute': 'device_del', 'arguments': {'id': '%s'}}", name);
            any = true;
        }
    }
    if (any) {
        guest_qmp(NULL, "{'execute': 'system_reset'}");
    }
}

/* --- The target --- */

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    g_autofree char *dir = g_dir_make_tmp("fuzz-qmp-XXXXXX", NULL);

    guest_boot("q35");
    /* A relative file name is made there, not in the tree; corpus folders are to be absolute. */
    if (!dir || chdir(dir) || rmdir(dir)) {
        perror("a temporary folder");
        exit(1);
    }
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    JsonParser *p = json_parser_new(on_request, NULL);

    json_parser_feed(p, (const char *)data, size);
    json_parser_flush(p);
    json_parser_free(p);
    eject_others();
    for (unsigned int i = 0; i < 3; i++) {
        remove_all("{'execute': 'query-named-block-nodes'}", "node-name", "blockdev-del", "node-name");
    }
    remove_all("{'execute': 'qom-list', 'arguments': {'path': '/objects'}}", "name", "object-del", "id");
    guest_end(guest_begin());
    return 0;
}

static size_t insert(uint8_t *data, size_t size, size_t max_size, size_t at, const char *text)
{
    size_t len = strlen(text);

    if (size + len > max_size) {
        return size;
    }
    memmove(data + at + len, data + at, size - at);
    memcpy(data + at, text, len); /* NOLINT(bugprone-not-null-terminated-result): bytes, no string */
    return size + len;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
    GRand *r = g_rand_new_with_seed(seed);
    unsigned int commands = 0;

    while (qmp_commands[commands].name) {
        commands++;
    }
    g_assert(commands);
    switch (g_rand_int(r) % 8) {
    case 0: {
        const char *name = qmp_commands[g_rand_int(r) % commands].name;
        g_autofree char *text = g_strdup_printf("{'execute': '%s', 'arguments': {}}", name);
        size = insert(data, size, max_size, size, text);
        break;
    }
    case 1:
    case 2:
    case 3:
    case 4:
    case 5: {
        /* Behind something that may be followed by a word. */
        size_t at = size ? g_rand_int(r) % size : 0;
        while (at < size && !strchr("{[,:", data[at])) {
            at++;
        }
        at += at < size;
        for (unsigned int n = 1 + g_rand_int(r) % 4; n; n--) {
            const char *word = words[g_rand_int(r) % G_N_ELEMENTS(words)];
            size = insert(data, size, max_size, at, word);
        }
        break;
    }
    default:
        size = LLVMFuzzerMutate(data, size, max_size);
    }
    g_rand_free(r);
    return size;
}
