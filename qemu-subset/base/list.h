/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Intrusive lists: a circular doubly linked list and a singly linked FIFO. Not thread-safe. */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

typedef struct ListNode {
    struct ListNode *prev, *next;
} ListNode;

/* A list head is a node that links to itself when the list is empty. */
static inline void list_init(ListNode *head)
{
    head->prev = head->next = head;
}

static inline bool list_empty(const ListNode *head)
{
    return head->next == head;
}

static inline void list_add_after(ListNode *pos, ListNode *node)
{
    node->prev = pos;
    node->next = pos->next;
    pos->next->prev = node;
    pos->next = node;
}

/* Append @node as the last element. */
static inline void list_append(ListNode *head, ListNode *node)
{
    list_add_after(head->prev, node);
}

/* Insert @node as the first element. */
static inline void list_prepend(ListNode *head, ListNode *node)
{
    list_add_after(head, node);
}

/* Unlink @node and leave it linked to itself, so that list_linked() is false and a second removal harmless. */
static inline void list_remove(ListNode *node)
{
    node->prev->next = node->next;
    node->next->prev = node->prev;
    list_init(node);
}

static inline bool list_linked(const ListNode *node)
{
    return node->next && node->next != node;
}

/* Move all elements of @from to the end of @to; @from is empty afterwards. */
static inline void list_splice(ListNode *to, ListNode *from)
{
    if (list_empty(from)) {
        return;
    }
    from->next->prev = to->prev;
    to->prev->next = from->next;
    from->prev->next = to;
    to->prev = from->prev;
    list_init(from);
}

#define list_entry(node, type, member) container_of(node, type, member)
#define list_first(head, type, member) list_entry((head)->next, type, member)
#define list_last(head, type, member) list_entry((head)->prev, type, member)

#define list_for_each(it, head, member)                                                            \
    for (it = list_first(head, __typeof__(*it), member); &it->member != (head);                    \
         it = list_first(&it->member, __typeof__(*it), member))

/* The current element may be removed in the body; no other may. */
#define list_for_each_safe(it, tmp, head, member)                                                  \
    for (it = list_first(head, __typeof__(*it), member),                                           \
        tmp = list_first(&it->member, __typeof__(*it), member);                                    \
         &it->member != (head);                                                                    \
         it = tmp, tmp = list_first(&tmp->member, __typeof__(*tmp), member))

/* FIFO: append at the tail, take from the head; one pointer an element. */
typedef struct FifoNode {
    struct FifoNode *next;
} FifoNode;

typedef struct Fifo {
    FifoNode *first;
    FifoNode **last;
} Fifo;

static inline void fifo_init(Fifo *f)
{
    f->first = NULL;
    f->last = &f->first;
}

static inline bool fifo_empty(const Fifo *f)
{
    return !f->first;
}

static inline void fifo_push(Fifo *f, FifoNode *node)
{
    node->next = NULL;
    *f->last = node;
    f->last = &node->next;
}

/* Put @node in front: it is the next that fifo_pop() returns. */
static inline void fifo_push_front(Fifo *f, FifoNode *node)
{
    node->next = f->first;
    if (!f->first) {
        f->last = &node->next;
    }
    f->first = node;
}

/* Returns NULL when empty. */
static inline FifoNode *fifo_pop(Fifo *f)
{
    FifoNode *node = f->first;

    if (node) {
        f->first = node->next;
        if (!f->first) {
            f->last = &f->first;
        }
    }
    return node;
}

#endif
