/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which thread serves which queue: iothread and iothread-vq-mapping. Main thread. */
#include "virtio-blk/internal.h"

#define PROPERTY "iothread-vq-mapping"

static VirtIOBlock *to_blk(Object *obj)
{
    return (VirtIOBlock *)obj;
}

/* --- The property: a list of {"iothread": ID, "vqs": [N, ...]} --- */

static bool check_vqs(json_t *vqs, size_t i, Error **errp)
{
    size_t k;
    json_t *vq;

    if (!json_is_array(vqs)) {
        error_setg(errp, "Invalid parameter type for '" PROPERTY "[%zu].vqs', expected: array", i);
        return false;
    }
    json_array_foreach(vqs, k, vq)
    {
        if (!json_is_integer(vq)) {
            error_setg(errp, "Parameter '" PROPERTY "[%zu].vqs[%zu]' expects uint64", i, k);
            return false;
        }
        if (json_integer_value(vq) < 0 || json_integer_value(vq) > UINT16_MAX) {
            error_setg(errp, "Parameter '" PROPERTY "[%zu].vqs[%zu]' expects uint16_t", i, k);
            return false;
        }
    }
    return true;
}

static bool check_item(json_t *item, size_t i, Error **errp)
{
    json_t *iothread, *vqs, *v;
    const char *key;

    if (!json_is_object(item)) {
        error_setg(errp, "Invalid parameter type for '" PROPERTY "[%zu]', expected: object", i);
        return false;
    }
    iothread = json_object_get(item, "iothread");
    vqs = json_object_get(item, "vqs");
    if (!iothread) {
        error_setg(errp, "Parameter '" PROPERTY "[%zu].iothread' is missing", i);
        return false;
    }
    if (!json_is_string(iothread)) {
        error_setg(errp, "Invalid parameter type for '" PROPERTY "[%zu].iothread', expected: string", i);
        return false;
    }
    if (vqs && !check_vqs(vqs, i, errp)) {
        return false;
    }
    json_object_foreach(item, key, v)
    {
        if (strcmp(key, "iothread") && strcmp(key, "vqs")) {
            error_setg(errp, "Parameter '" PROPERTY "[%zu].%s' is unexpected", i, key);
            return false;
        }
    }
    return true;
}

bool virtio_blk_mapping_set(Object *obj, const ObjectProperty *prop, json_t *value, Error **errp)
{
    VirtIOBlock *s = to_blk(obj);
    size_t i;
    json_t *item;

    if (!device_check_settable(obj, prop->name, false, errp)) {
        return false;
    }
    if (!json_is_array(value)) {
        error_setg(errp, "Invalid parameter type for '" PROPERTY "', expected: array");
        return false;
    }
    json_array_foreach(value, i, item)
    {
        if (!check_item(item, i, errp)) {
            return false;
        }
    }
    json_decref(s->vq_mapping);
    s->vq_mapping = json_deep_copy(value);
    return true;
}

json_t *virtio_blk_mapping_get(Object *obj, const ObjectProperty *prop, Error **errp)
{
    VirtIOBlock *s = to_blk(obj);

    return s->vq_mapping ? json_deep_copy(s->vq_mapping) : json_array();
}

/* --- Deciding --- */

static bool has_vqs(json_t *item)
{
    return json_array_size(json_object_get(item, "vqs")) > 0;
}

/* Names and shape of the list as a whole. */
static bool check_list(VirtIOBlock *s, Error **errp)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    bool explicit_vqs = has_vqs(json_array_get(s->vq_mapping, 0));
    size_t i;
    json_t *item;

    json_array_foreach(s->vq_mapping, i, item)
    {
        const char *name = json_string_value(json_object_get(item, "iothread"));

        if (!iothread_by_id(name)) {
            error_setg(errp, "IOThread \"%s\" object does not exist", name);
            return false;
        }
        if (!g_hash_table_add(seen, (void *)name)) {
            error_setg(errp, "duplicate IOThread name \"%s\" in " PROPERTY, name);
            return false;
        }
        if (has_vqs(item) != explicit_vqs) {
            error_setg(errp, "either all items in " PROPERTY " must have vqs or none of them must have it");
            return false;
        }
    }
    return true;
}

static bool assign_explicit(VirtIOBlock *s, IOThread **owner, Error **errp)
{
    size_t i, k;
    json_t *item, *v;

    json_array_foreach(s->vq_mapping, i, item)
    {
        const char *name = json_string_value(json_object_get(item, "iothread"));

        json_array_foreach(json_object_get(item, "vqs"), k, v)
        {
            json_int_t vq = json_integer_value(v);

            if (vq >= s->num_queues) {
                error_setg(errp,
                           "vq index %" JSON_INTEGER_FORMAT " for IOThread \"%s\" must be less than num_queues %u in " PROPERTY,
                           vq, name, s->num_queues);
                return false;
            }
            if (owner[vq]) {
                error_setg(errp, "cannot assign vq %" JSON_INTEGER_FORMAT " to IOThread \"%s\" because it is already assigned",
                           vq, name);
                return false;
            }
            owner[vq] = iothread_by_id(name);
        }
    }
    for (i = 0; i < s->num_queues; i++) {
        if (!owner[i]) {
            error_setg(errp, "missing vq %zu IOThread assignment in " PROPERTY, i);
            return false;
        }
    }
    return true;
}

static bool assign(VirtIOBlock *s, IOThread **owner, Error **errp)
{
    size_t n = json_array_size(s->vq_mapping);

    if (!n) {
        for (unsigned int i = 0; i < s->num_queues; i++) {
            owner[i] = (IOThread *)s->iothread;
        }
        return true;
    }
    if (!check_list(s, errp)) {
        return false;
    }
    if (has_vqs(json_array_get(s->vq_mapping, 0))) {
        return assign_explicit(s, owner, errp);
    }
    for (unsigned int i = 0; i < s->num_queues; i++) {
        json_t *item = json_array_get(s->vq_mapping, i % n);

        owner[i] = iothread_by_id(json_string_value(json_object_get(item, "iothread")));
    }
    return true;
}

/* All that are named, those without a queue too. */
static void use_iothreads(VirtIOBlock *s)
{
    size_t i;
    json_t *item;

    s->used_iothreads = g_ptr_array_new();
    if (s->iothread) {
        g_ptr_array_add(s->used_iothreads, s->iothread);
    }
    json_array_foreach(s->vq_mapping, i, item)
    {
        const char *name = json_string_value(json_object_get(item, "iothread"));

        g_ptr_array_add(s->used_iothreads, iothread_object(iothread_by_id(name)));
    }
    for (i = 0; i < s->used_iothreads->len; i++) {
        object_use(g_ptr_array_index(s->used_iothreads, i));
    }
}

bool virtio_blk_mapping_apply(VirtIOBlock *s, Error **errp)
{
    g_autofree IOThread **owner = g_new0(IOThread *, s->num_queues);
    bool mapping = json_array_size(s->vq_mapping) > 0;

    if (mapping && s->iothread) {
        error_setg(errp, "iothread and " PROPERTY " properties cannot be set at the same time");
        return false;
    }
    if ((mapping || s->iothread) && !s->vdev.ioeventfd) {
        error_setg(errp, "ioeventfd is required for iothread");
        return false;
    }
    if (!assign(s, owner, errp)) {
        return false;
    }
    use_iothreads(s);
    for (unsigned int i = 0; i < s->num_queues; i++) {
        VirtIOBlkQueue *q = &s->queues[i];

        q->ctx = owner[i] ? iothread_context(owner[i]) : aio_context_main();
        s->vdev.queues[i].ctx = q->ctx;
        q->channel = blk_channel_get(s->blk, q->ctx, errp);
        if (!q->channel) {
            virtio_blk_mapping_release(s);
            return false;
        }
    }
    return true;
}

void virtio_blk_mapping_release(VirtIOBlock *s)
{
    for (unsigned int i = 0; i < s->num_queues; i++) {
        if (s->queues[i].channel) {
            blk_channel_put(s->queues[i].channel);
        }
    }
    /* Not before the last user of each is gone: its thread may still compare the pointers on the way out of a drain. */
    for (unsigned int i = 0; i < s->num_queues; i++) {
        s->queues[i].channel = NULL;
    }
    for (unsigned int i = 0; s->used_iothreads && i < s->used_iothreads->len; i++) {
        object_unuse(g_ptr_array_index(s->used_iothreads, i));
    }
    g_clear_pointer(&s->used_iothreads, g_ptr_array_unref);
}
