# SPDX-License-Identifier: GPL-2.0-or-later
"""C types: enums with their tables, structs, unions, alternates and lists, and how they are freed and cloned."""

from .names import c_string, enum_constant
from .output import Output


def header(schema, module):
    out = Output(module, 'types', 'h')
    out.include('qapi/util.h')
    if module:
        out.include('qapi/qapi-types-builtin.h')
    for included in module.includes if module else []:
        out.include(f'qapi/qapi-types-{included.name}.h')
    types = schema.of(module, ('object', 'alternate'))
    arrays = schema.arrays_of(module)
    arguments = schema.arguments_of(module) if module else []
    for item in types + arrays + arguments:
        out.line(f'typedef struct {item.name} {item.name};')
    for enum in schema.of(module, ('enum',)):
        emit_enum(out, enum)
    for item in by_value_order(types) + arguments:
        emit_struct(out, item)
    for array in arrays:
        out.line(f'\nstruct {array.name} {{')
        out.line(f'    {array.name} *next;')
        out.line(f'    {array.element.c_member}value;')
        out.line('};')
    out.line()
    for item in types + arrays:
        out.line(f'void qapi_free_{item.name}({item.name} *obj);')
        out.line(f'G_DEFINE_AUTOPTR_CLEANUP_FUNC({item.name}, qapi_free_{item.name})')
        out.line(f'{item.name} *qapi_clone_{item.name}(const {item.name} *obj);')
    return out


def emit_enum(out, enum):
    out.line(f'\ntypedef enum {enum.name} {{')
    for value in enum.live():
        out.line(f'    {enum_constant(enum, value.name)},')
    out.line(f'    {enum_constant(enum, "_MAX")},')
    out.line(f'}} {enum.name};')
    out.line(f'#define {enum.name}_str(val) qapi_enum_lookup(&{enum.name}_lookup, (val))')
    out.line(f'extern const QEnumLookup {enum.name}_lookup;')


def by_value_order(types):
    """Branches are held by value, so their structs come first."""
    done = []

    def visit(item):
        if item in done:
            return
        for branch in item.live_branches():
            if branch.type in types and branch.type.meta == 'object' and item.meta == 'object':
                visit(branch.type)
        done.append(item)

    for item in types:
        visit(item)
    return done


def emit_struct(out, item):
    out.line(f'\nstruct {item.name} {{')
    if item.meta == 'alternate':
        out.line('    QType type;')
        emit_union(out, [(branch, branch.type.c_member) for branch in item.live_branches()])
    else:
        emit_members(out, item)
    out.line('};')


def emit_members(out, item):
    if item.base and item.base.all_members():
        out.line(f'    /* Like {item.base.name}: */')
    for member in item.all_members():
        if item.base and item.own() and member is item.own()[0]:
            out.line('    /* Own: */')
        if member.has:
            out.line(f'    bool {member.has};')
        out.line(f'    {member.type.c_member}{member.c_name};')
    if item.live_branches():
        emit_union(out, [(branch, f'{branch.type.name} ') for branch in item.live_branches()])
    elif not item.all_members():
        out.line('    char empty;')


def emit_union(out, branches):
    out.line('    union {')
    for branch, c_type in branches:
        out.line(f'        {c_type}{branch.c_name};')
    out.line('    } u;')


def source(schema, module):
    out = Output(module, 'types', 'c')
    out.include(f'qapi/qapi-visit-{out.module_name}.h')
    for enum in schema.of(module, ('enum',)):
        out.line(f'\nconst QEnumLookup {enum.name}_lookup = {{')
        out.line('    .array = (const char *const[]) {')
        for value in enum.live():
            out.line(f'        {c_string(value.name)},')
        out.line('        NULL,')
        out.line('    },')
        out.line(f'    .size = {enum_constant(enum, "_MAX")},')
        out.line('};')
    for item in schema.of(module, ('object', 'alternate')) + schema.arrays_of(module):
        emit_lifetime(out, item)
    return out


def emit_lifetime(out, item):
    out.line(f'''
void qapi_free_{item.name}({item.name} *obj)
{{
    if (obj) {{
        g_autoptr(Visitor) v = visitor_dealloc_new();

        {item.c_visit}(v, NULL, &obj, NULL);
    }}
}}

{item.name} *qapi_clone_{item.name}(const {item.name} *obj)
{{
    {item.name} *copy = ({item.name} *)obj;

    if (obj) {{
        g_autoptr(Visitor) v = visitor_clone_new();

        {item.c_visit}(v, NULL, &copy, NULL);
    }}
    return copy;
}}''')
