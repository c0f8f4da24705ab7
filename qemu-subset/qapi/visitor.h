/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Visitors: one walk over a QAPI type that reads, writes, clones or frees it, depending on the visitor. */
#ifndef QAPI_VISITOR_H
#define QAPI_VISITOR_H

#include "qapi/json.h"
#include "qapi/util.h"

typedef struct Visitor Visitor;

typedef enum VisitorKind {
    VISITOR_INPUT,
    VISITOR_OUTPUT,
    VISITOR_CLONE,
    VISITOR_DEALLOC,
} VisitorKind;

/*
 * @member is a name, or NULL for a list element and for the root. Every function that takes @errp returns false
 * exactly when it sets it. A visitor belongs to one thread at a time. What may be NULL does nothing then, except that
 * an input visitor has everything but type_size.
 *
 * The memory of structs and list cells is the walk's business (visitor.c), so a visitor only sees what is in them.
 */
typedef struct VisitorOps {
    VisitorKind kind;
    /* An object or list begins or ends; they nest. */
    bool (*open_object)(Visitor *v, const char *member, Error **errp);
    bool (*open_list)(Visitor *v, const char *member, Error **errp);
    void (*close)(Visitor *v);
    /* Input only: */
    bool (*all_known)(Visitor *v, Error **errp); /* complain if the open object has members that nobody asked for */
    bool (*more)(Visitor *v);                    /* move to the next element of the open list; false if there is none */
    bool (*peek)(Visitor *v, const char *member, QType *type, Error **errp);
    void (*optional)(Visitor *v, const char *member, bool *present);
    /* One leaf. */
    bool (*type_int64)(Visitor *v, const char *member, int64_t *obj, Error **errp);
    bool (*type_uint64)(Visitor *v, const char *member, uint64_t *obj, Error **errp);
    bool (*type_size)(Visitor *v, const char *member, uint64_t *obj, Error **errp); /* NULL: as uint64 */
    bool (*type_bool)(Visitor *v, const char *member, bool *obj, Error **errp);
    bool (*type_str)(Visitor *v, const char *member, char **obj, Error **errp);
    bool (*type_number)(Visitor *v, const char *member, double *obj, Error **errp);
    bool (*type_any)(Visitor *v, const char *member, json_t **obj, Error **errp);
    bool (*type_null)(Visitor *v, const char *member, json_t **obj, Error **errp);
    void (*free)(Visitor *v);
} VisitorOps;

struct Visitor {
    const VisitorOps *ops;
};

/* Enter and leave an object whose members are visited one by one, without a struct around them. */
bool visit_open(Visitor *v, const char *member, Error **errp);
void visit_close(Visitor *v);

/* Is the optional member there? Input sets *@present, the others keep it. Returns *@present. */
bool visit_optional(Visitor *v, const char *member, bool *present);

bool visit_type_enum(Visitor *v, const char *member, int *obj, const QEnumLookup *lookup, Error **errp);
/* visit_type_int8() and so on: one scalar, of the type that the name says. */
#define QAPI_DECLARE_VISIT(type, ctype)                                                            \
    bool visit_type_##type(Visitor *v, const char *member, ctype *obj, Error **errp)
QAPI_DECLARE_VISIT(bool, bool);
QAPI_DECLARE_VISIT(number, double);
QAPI_DECLARE_VISIT(str, char *);
QAPI_DECLARE_VISIT(size, uint64_t);
QAPI_DECLARE_VISIT(int, int64_t);
QAPI_DECLARE_VISIT(int8, int8_t);
QAPI_DECLARE_VISIT(uint8, uint8_t);
QAPI_DECLARE_VISIT(int16, int16_t);
QAPI_DECLARE_VISIT(uint16, uint16_t);
QAPI_DECLARE_VISIT(int32, int32_t);
QAPI_DECLARE_VISIT(uint32, uint32_t);
QAPI_DECLARE_VISIT(int64, int64_t);
QAPI_DECLARE_VISIT(uint64, uint64_t);
QAPI_DECLARE_VISIT(any, json_t *);
QAPI_DECLARE_VISIT(null, json_t *);

bool visit_is_input(const Visitor *v);

void visit_free(Visitor *v);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Visitor, visit_free)

/*
 * Input visitors; all keep a reference to @value and report wrong members by their full path ("props.0.size").
 * The syntax decides what a leaf may look like and how a complaint about it reads:
 *   QAPI_JSON     typed JSON: "Invalid parameter type for 'X', expected: integer", "Parameter 'X' is unexpected"
 *   QAPI_KEYVAL   string leaves from keyval_parse(): "Parameter 'X' expects integer"
 *   QAPI_OPTS     a flat object from opts_to_json(): "Parameter 'X' expects an int64 value", "Invalid parameter 'X'";
 *                 nested structs take their members from the same flat object, lists accept "0-3" ranges
 *   QAPI_STRING   one string (the root, or the members of an object): "Parameter 'X' expects int64"
 */
typedef enum QapiSyntax {
    QAPI_JSON = 0,
    QAPI_KEYVAL = 1,
    QAPI_OPTS,
    QAPI_STRING,
} QapiSyntax;
Visitor *visitor_input_new(json_t *value, QapiSyntax syntax);
/* QAPI_STRING over @text. */
Visitor *visitor_string_input_new(const char *text);

Visitor *visitor_json_output_new(void);
/* The tree that was written, owned by the caller; once, after the walk. */
json_t *visitor_json_output_take(Visitor *v);

/* Clone: *obj holds the source's pointers (a shallow copy) before the walk and the copy's after it. */
Visitor *visitor_clone_new(void);
Visitor *visitor_dealloc_new(void);

#endif
