/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Permissions: what the users of a node need, whether they agree, and what that asks of the nodes below. */
#include "block/internal.h"

typedef struct OldPerm {
    BlockChild *c;
    uint32_t perm, shared;
} OldPerm;

typedef struct CheckedNode {
    BlockNode *node;
    uint32_t perm, shared;
} CheckedNode;

/* One change from its first check to commit or abort. */
typedef struct PermChange {
    GArray *old;     /* OldPerm, in the order of the changes */
    GArray *checked; /* CheckedNode */
} PermChange;

static char *perm_names(uint32_t perm)
{
    static const char *const names[] = { "consistent read", "write", "write unchanged", "resize" };
    GString *s = g_string_new(NULL);

    for (unsigned int i = 0; i < G_N_ELEMENTS(names); i++) {
        if (perm & (1u << i)) {
            g_string_append_printf(s, "%s%s", s->len ? ", " : "", names[i]);
        }
    }
    return g_string_free(s, FALSE);
}

static void report_conflict(BlockNode *node, BlockChild *needs, BlockChild *refuses, Error **errp)
{
    g_autofree char *names = perm_names(needs->perm & ~refuses->shared);
    g_autofree char *who = needs->ops->describe(needs);
    g_autofree char *other = refuses->ops->describe(refuses);

    error_setg(errp,
               "Permission conflict on node '%s': permissions '%s' are both required by %s (uses node '%s' as '%s' child) "
               "and unshared by %s (uses node '%s' as '%s' child).",
               node->name, names, who, node->name, needs->role, other, node->name, refuses->role);
}

static bool parents_agree(BlockNode *node, Error **errp)
{
    BlockChild *a, *b;

    list_for_each(a, &node->parents, in_node) {
        list_for_each(b, &node->parents, in_node) {
            if (a != b && (b->perm & ~a->shared)) {
                report_conflict(node, b, a, errp);
                return false;
            }
        }
    }
    return true;
}

static void cumulative(const BlockNode *node, uint32_t *perm, uint32_t *shared)
{
    BlockChild *p;

    *perm = 0;
    *shared = BLK_PERM_ALL;
    list_for_each(p, &node->parents, in_node) {
        *perm |= p->perm;
        *shared &= p->shared;
    }
}

static void set_child(PermChange *t, BlockChild *c, uint32_t perm, uint32_t shared)
{
    OldPerm old = { c, c->perm, c->shared };

    g_array_append_val(t->old, old);
    c->perm = perm;
    c->shared = shared;
}

static bool check_node(PermChange *t, BlockNode *node, Error **errp)
{
    CheckedNode checked = { .node = node };
    BlockChild *c;

    cumulative(node, &checked.perm, &checked.shared);
    if (!parents_agree(node, errp)) {
        return false;
    }
    if ((checked.perm & (BLK_PERM_WRITE | BLK_PERM_WRITE_UNCHANGED)) && node->read_only) {
        error_setg(errp, "Block node is read-only");
        return false;
    }
    /* A write to the last block would make the image larger. */
    if ((checked.perm & (BLK_PERM_WRITE | BLK_PERM_WRITE_UNCHANGED)) && !(checked.perm & BLK_PERM_RESIZE) &&
        node->total_bytes % node->limits.request_alignment) {
        error_setg(errp, "Cannot get 'write' permission without 'resize': Image size is not a multiple of request alignment");
        return false;
    }
    if (node->drv->check_perm && node->drv->check_perm(node, checked.perm, checked.shared, errp) < 0) {
        return false;
    }
    g_array_append_val(t->checked, checked);
    list_for_each(c, &node->children, in_parent) {
        uint32_t perm = checked.perm, shared = checked.shared;

        if (node->drv->child_perm) {
            node->drv->child_perm(node, c, checked.perm, checked.shared, &perm, &shared);
        }
        if (perm != c->perm || shared != c->shared) {
            set_child(t, c, perm, shared);
            if (!check_node(t, c->node, errp)) {
                return false;
            }
        }
    }
    return true;
}

static void commit(PermChange *t)
{
    for (guint i = 0; i < t->checked->len; i++) {
        CheckedNode *n = &g_array_index(t->checked, CheckedNode, i);

        if (n->node->drv->set_perm) {
            n->node->drv->set_perm(n->node, n->perm, n->shared);
        }
    }
}

static void rollback(PermChange *t)
{
    for (guint i = t->checked->len; i-- > 0;) {
        BlockNode *node = g_array_index(t->checked, CheckedNode, i).node;

        if (node->drv->abort_perm) {
            node->drv->abort_perm(node);
        }
    }
    for (guint i = t->old->len; i-- > 0;) {
        OldPerm *old = &g_array_index(t->old, OldPerm, i);

        old->c->perm = old->perm;
        old->c->shared = old->shared;
    }
}

static void change_begin(PermChange *t)
{
    t->old = g_array_new(FALSE, FALSE, sizeof(OldPerm));
    t->checked = g_array_new(FALSE, FALSE, sizeof(CheckedNode));
}

static void change_end(PermChange *t)
{
    g_array_free(t->old, TRUE);
    g_array_free(t->checked, TRUE);
}

bool block_perm_update(BlockChild *c, uint32_t perm, uint32_t shared, Error **errp)
{
    PermChange t;
    bool ok;

    change_begin(&t);
    set_child(&t, c, perm, shared);
    ok = check_node(&t, c->node, errp);
    if (ok) {
        commit(&t);
    } else {
        rollback(&t);
    }
    change_end(&t);
    return ok;
}

void block_perm_refresh(BlockNode *node)
{
    g_autoptr(Error) err = NULL;
    PermChange t;

    change_begin(&t);
    /* Asking for less than before is refused by nobody; were it, keeping more than needed harms nothing. */
    if (check_node(&t, node, &err)) {
        commit(&t);
    } else {
        rollback(&t);
    }
    change_end(&t);
}
