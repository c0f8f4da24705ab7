/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The parts of a walk that do not depend on the type; generated visitors consist of calls to these. */
#ifndef QAPI_VISIT_GENERIC_H
#define QAPI_VISIT_GENERIC_H

#include "qapi/visitor.h"

/* Visits the members of the struct at @obj, or the value in the list cell at @obj. */
typedef bool QapiWalk(Visitor *v, void *obj, Error **errp);
/* Visits the value of the alternate at @obj, whose type is known. */
typedef bool QapiAlternateWalk(Visitor *v, const char *member, void *obj, Error **errp);

/* An input that fails frees what it made and leaves *@obj NULL. */
bool qapi_visit_struct(Visitor *v, const char *member, void **obj, size_t size, QapiWalk *walk, Error **errp);
bool qapi_visit_list(Visitor *v, const char *member, GenericList **obj, size_t size, QapiWalk *walk, Error **errp);
bool qapi_visit_alternate(Visitor *v, const char *member, GenericAlternate **obj, size_t size, QapiAlternateWalk *walk,
                          Error **errp);
/* The value is none of the kinds that alternate @type has. */
bool qapi_alternate_mismatch(Visitor *v, const char *member, const char *type, Error **errp);

/* Fill the zeroed struct @arg from the JSON object @args; @walk NULL: there are no arguments. Frees after a failure. */
bool qapi_read_arguments(json_t *args, QapiWalk *walk, void *arg, Error **errp);
void qapi_drop_arguments(QapiWalk *walk, void *arg);

#endif
