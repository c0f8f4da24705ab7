# SPDX-License-Identifier: GPL-2.0-or-later
"""C visitors for every type, and the conversions from and to JSON that are built on them."""

from .names import c_string, enum_constant
from .output import Output
from .schema import json_kind


def header(schema, module):
    out = Output(module, 'visit', 'h')
    out.include('qapi/visitor.h')
    out.include('qapi/visit-generic.h')
    out.include(f'qapi/qapi-types-{out.module_name}.h')
    for included in module.includes if module else []:
        out.include(f'qapi/qapi-visit-{included.name}.h')
    if module:
        out.include('qapi/qapi-visit-builtin.h')
    for enum in schema.of(module, ('enum',)):
        out.line(f'bool {enum.c_visit}(Visitor *v, const char *name, {enum.name} *obj, Error **errp);')
    objects = schema.of(module, ('object',))
    for item in objects + (schema.arguments_of(module) if module else []):
        out.line(f'bool {item.c_visit}_members(Visitor *v, {item.name} *obj, Error **errp);')
    types = schema.of(module, ('object', 'alternate')) + schema.arrays_of(module)
    for item in types:
        out.line(f'bool {item.c_visit}(Visitor *v, const char *name, {item.name} **obj, Error **errp);')
        out.line(f'{item.name} *{item.name}_from_json(json_t *value, QapiSyntax syntax, Error **errp);')
        out.line(f'json_t *{item.name}_to_json(const {item.name} *obj);')
    return out


def source(schema, module):
    out = Output(module, 'visit', 'c')
    for enum in schema.of(module, ('enum',)):
        out.line(f'''
bool {enum.c_visit}(Visitor *v, const char *name, {enum.name} *obj, Error **errp)
{{
    int value = *obj;
    bool ok = visit_type_enum(v, name, &value, &{enum.name}_lookup, errp);

    *obj = value;
    return ok;
}}''')
    for item in schema.of(module, ('object',)):
        emit_members(out, item)
        emit_object(out, item)
    for item in schema.arguments_of(module) if module else []:
        emit_members(out, item)
    for item in schema.of(module, ('alternate',)):
        emit_alternate(out, item)
    for item in schema.arrays_of(module):
        emit_array(out, item)
    for item in schema.of(module, ('object', 'alternate')) + schema.arrays_of(module):
        emit_conversions(out, item)
    return out


def emit_members(out, item):
    out.line(f'\nbool {item.c_visit}_members(Visitor *v, {item.name} *obj, Error **errp)')
    out.line('{')
    if item.base and not item.base.empty:
        out.line(f'    if (!{item.base.c_visit}_members(v, ({item.base.name} *)obj, errp)) {{')
        out.line('        return false;')
        out.line('    }')
    for member in item.own():
        emit_member(out, member)
    if item.live_branches():
        emit_switch(out, item)
    out.line('    return true;')
    out.line('}')


def emit_member(out, member):
    name, field = c_string(member.name), f'obj->{member.c_name}'
    call = f'{member.type.c_visit}(v, {name}, &{field}, errp)'
    if not member.optional:
        out.line(f'    if (!{call}) {{')
        out.line('        return false;')
        out.line('    }')
        return
    if member.has:
        out.line(f'    if (visit_optional(v, {name}, &obj->{member.has}) && !{call}) {{')
        out.line('        return false;')
        out.line('    }')
        return
    out.line('    {')
    out.line(f'        bool present = {field};')
    out.line('')
    out.line(f'        if (visit_optional(v, {name}, &present) && !{call}) {{')
    out.line('            return false;')
    out.line('        }')
    out.line('    }')


def emit_switch(out, item):
    tag = item.find(item.tag)
    out.line(f'    switch (obj->{tag.c_name}) {{')
    for branch in item.live_branches():
        out.line(f'    case {enum_constant(tag.type, branch.name)}:')
        out.line(f'        return {branch.type.c_visit}_members(v, &obj->u.{branch.c_name}, errp);')
    out.line('    default:')
    out.line('        break;')
    out.line('    }')


def emit_object(out, item):
    out.line(f'''
static bool {item.name}_walk(Visitor *v, void *obj, Error **errp)
{{
    return {item.c_visit}_members(v, obj, errp);
}}

bool {item.c_visit}(Visitor *v, const char *name, {item.name} **obj, Error **errp)
{{
    return qapi_visit_struct(v, name, (void **)obj, sizeof(**obj), {item.name}_walk, errp);
}}''')


def emit_alternate(out, item):
    out.line(f'\nstatic bool {item.name}_walk(Visitor *v, const char *name, void *opaque, Error **errp)')
    out.line('{')
    out.line(f'    {item.name} *obj = opaque;')
    out.line('')
    out.line('    switch (obj->type) {')
    for branch in item.live_branches():
        field = f'obj->u.{branch.c_name}'
        out.line(f'    case {json_kind(branch.type)}:')
        out.line(f'        return {branch.type.c_visit}(v, name, &{field}, errp);')
    out.line('    default:')
    out.line(f'        return qapi_alternate_mismatch(v, name, {c_string(item.name)}, errp);')
    out.line('    }')
    out.line('}')
    out.line(f'''
bool {item.c_visit}(Visitor *v, const char *name, {item.name} **obj, Error **errp)
{{
    return qapi_visit_alternate(v, name, (GenericAlternate **)obj, sizeof(**obj), {item.name}_walk, errp);
}}''')


def emit_array(out, item):
    out.line(f'''
static bool {item.name}_walk(Visitor *v, void *cell, Error **errp)
{{
    return {item.element.c_visit}(v, NULL, &(({item.name} *)cell)->value, errp);
}}

bool {item.c_visit}(Visitor *v, const char *name, {item.name} **obj, Error **errp)
{{
    return qapi_visit_list(v, name, (GenericList **)obj, sizeof(**obj), {item.name}_walk, errp);
}}''')


def emit_conversions(out, item):
    out.line(f'''
{item.name} *{item.name}_from_json(json_t *value, QapiSyntax syntax, Error **errp)
{{
    g_autoptr(Visitor) v = visitor_input_new(value, syntax);
    {item.name} *obj = NULL;

    {item.c_visit}(v, NULL, &obj, errp);
    return obj;
}}

json_t *{item.name}_to_json(const {item.name} *obj)
{{
    g_autoptr(Visitor) v = visitor_json_output_new();
    {item.name} *source = ({item.name} *)obj;

    {item.c_visit}(v, NULL, &source, &error_abort);
    return visitor_json_output_take(v);
}}''')
