/* SPDX-License-Identifier: GPL-2.0-or-later */
/* QOM: types with single inheritance, properties, and the tree of objects. Main thread only. */
#ifndef OBJECT_OBJECT_H
#define OBJECT_OBJECT_H

#include "base/error.h"

#include <jansson.h>

typedef struct Object Object;
typedef struct ObjectType ObjectType;
typedef struct ObjectProperty ObjectProperty;

/*
 * Properties carry JSON values. A setter gets a value of any JSON type, or a string from a command line: object_set()
 * converts such text for properties with a scalar type before the setter sees it. Getters return a new reference.
 * On failure nothing has changed.
 */
typedef json_t *PropertyGetter(Object *obj, const ObjectProperty *prop, Error **errp);
typedef bool PropertySetter(Object *obj, const ObjectProperty *prop, json_t *value, Error **errp);

/* Decides conversion from text and the wording of errors. */
typedef enum PropertyKind {
    PROP_BOOL,
    PROP_STRING,
    PROP_INT,     /* type "int": int64 */
    PROP_UINT16,
    PROP_UINT32,
    PROP_INT32,
    PROP_UINT64,
    PROP_SIZE,    /* accepts suffixes in text */
    PROP_ENUM,    /* type name and values given */
    PROP_LINK,    /* link<TYPE>: path of an object or "" */
    PROP_CHILD,   /* child<TYPE>: read-only */
    PROP_ANY,     /* the setter sees the JSON as it is (lists, structs) */
} PropertyKind;

struct ObjectProperty {
    const char *name;
    PropertyKind kind;
    const char *type;        /* as qom-list shows it; NULL: from the kind */
    const char *description; /* for ",help" and device-list-properties; may be NULL */
    PropertyGetter *get;     /* NULL: not readable */
    PropertySetter *set;     /* NULL: not writable */
    bool required;           /* user-creatable objects are refused without it */
    const char *const *values; /* PROP_ENUM: NULL-terminated names, the value's index is what object_enum_*() use */
    size_t offset;           /* for the generic getters and setters below: member within the object */
    int64_t min, max;        /* range of integers, see object_check_range() */
    json_t *default_value;   /* shown by help; may be NULL */
    const void *opaque;
};

struct ObjectType {
    const char *name;
    const char *parent; /* NULL for "object" */
    size_t size;        /* of the instance; 0: the parent's */
    bool abstract;
    const char *const *interfaces;     /* NULL or NULL-terminated ("user-creatable") */
    const ObjectProperty *properties;  /* NULL or ended by a NULL name; inherited */
    void (*init)(Object *obj);         /* base first; must not fail */
    void (*finalize)(Object *obj);     /* derived first */
    /* user-creatable: all properties are set; false with @errp leaves the object to be dropped. */
    bool (*complete)(Object *obj, Error **errp);
    /* user-creatable: NULL: deletable unless in use (see object_use()); else false with @errp set refuses. */
    bool (*can_be_deleted)(Object *obj, Error **errp);
    const char *desc;
    const void *klass; /* what a family of types wants to know of each (guest/: DeviceClass) */
};

/* The head of every instance. */
struct Object {
    const ObjectType *type;
    Object *parent;
    char *name;       /* within the parent; NULL while it has none */
    int refcnt;
    int users;        /* object_use(): somebody depends on it, object-del is refused */
    GHashTable *children; /* name -> Object; NULL until needed */
    GPtrArray *child_order;
};

/* --- Types; registered at start, before any object exists --- */
void object_register_type(const ObjectType *type);
const ObjectType *object_find_type(const char *name);
/* Walks registered types in unspecified order. */
void object_for_each_type(void (*fn)(const ObjectType *t, void *opaque), void *opaque);
const ObjectType *object_type_parent(const ObjectType *t);
/* True if @t is @name, inherits it or implements it. */
bool object_type_is_a(const ObjectType *t, const char *name);
/* Finds it in the class chain; NULL if the type has none of that name. */
const ObjectProperty *object_type_find_property(const ObjectType *t, const char *name);

/* --- Instances --- */
Object *object_new(const char *type); /* one reference; the type is known and not abstract */
Object *object_ref(Object *obj);
void object_unref(Object *obj);
static inline bool object_is_a(const Object *obj, const char *name)
{
    return object_type_is_a(obj->type, name);
}

/* The tree. A child is kept alive by its parent. Fails with QEMU's text on a duplicate name. */
bool object_add_child(Object *parent, const char *name, Object *child, Error **errp);
void object_unparent(Object *obj); /* drops the parent's reference */
Object *object_root(void);
Object *object_objects(void);  /* /objects */
/* A container below @path, made as needed ("/machine/unattached"). */
Object *object_container(const char *path);
/* Absolute or partial path; @ambiguous may be NULL. NULL if not found or not unique. */
Object *object_resolve(const char *path, bool *ambiguous);
Object *object_child(const Object *parent, const char *name);
/* All children, in the order in which QEMU's qom-list shows them, which is its hash table's; g_list_free() the list. */
GList *object_children(const Object *parent);
char *object_path(const Object *obj); /* canonical; NULL if not in the tree; g_free() it */

/* In-use marks, for iothreads and memory backends: they make object-del fail. */
void object_use(Object *obj);
void object_unuse(Object *obj);

/* --- Properties --- */
const ObjectProperty *object_find_property(const Object *obj, const char *name);
/* Its type as qom-list shows it. */
const char *object_property_type(const ObjectProperty *prop);
/* Every property, class ones first, as qom-list gives them; @fn gets the kind-derived type name. */
void object_for_each_property(Object *obj, void (*fn)(Object *obj, const ObjectProperty *p, const char *type, void *opaque),
                              void *opaque);

json_t *object_get(Object *obj, const char *name, Error **errp);
/* JSON of the client; wrong types give QEMU's texts. */
bool object_set(Object *obj, const char *name, json_t *value, Error **errp);
/* Where a text comes from; it decides the wording of conversion errors. */
typedef enum PropertyText {
    PROPERTY_TEXT_OBJECT,
    PROPERTY_TEXT_DEVICE,
    PROPERTY_TEXT_HMP,
    PROPERTY_JSON, /* not text: typed already */
} PropertyText;
/* Text of -object, -device, or HMP qom-set: converted by the kind of the property, then set. */
bool object_set_text(Object *obj, const char *name, const char *text, PropertyText from, Error **errp);
/* The conversion alone; new reference. PROP_ANY and strings stay text. */
json_t *property_from_text(const ObjectProperty *prop, const char *text, PropertyText from, Error **errp);
/* A typed value has the JSON type that the kind of the property demands, and fits it. */
bool property_check(const ObjectProperty *prop, const json_t *value, Error **errp);

/* Generic accessors for a member at prop->offset. */
PropertyGetter object_get_bool, object_get_string, object_get_int64, object_get_uint16, object_get_uint32,
    object_get_int32, object_get_uint64, object_get_enum;
PropertySetter object_set_bool, object_set_string, object_set_int64, object_set_uint16, object_set_uint32,
    object_set_int32, object_set_uint64, object_set_enum;

/* prop->min..max, both 0: any. QEMU's text "NAME value must be in range [MIN, MAX]". */
bool object_check_range(const ObjectProperty *prop, int64_t value, Error **errp);

/* --- User-creatable objects --- */
/*
 * The shape of options: id, type and names known, texts converted and types right, worded for -object (@from PROPERTY_TEXT_OBJECT),
 * HMP's object_add (PROPERTY_TEXT_DEVICE) or JSON. Returns typed options for user_creatable_add(), or NULL with @errp set.
 */
json_t *user_creatable_check(json_t *options, PropertyText from, Error **errp);
/* @options holds qom-type, id and typed properties. Leaves nothing behind on failure. */
bool user_creatable_add(json_t *options, Error **errp);
bool user_creatable_del(const char *id, Error **errp);
/* What "help" (@type NULL) and "TYPE,help" answer, appended to @out. */
bool object_help(const char *type, GString *out, Error **errp);
/* At program end: take everything out of /objects, so that IOThreads end. Nothing may use them any more. */
void object_cleanup(void);

/* Called once: registers object/'s own types (container, iothread, main-loop, memory backends live in guest/). */
void object_register_types(void);

#endif
