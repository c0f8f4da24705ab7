# SPDX-License-Identifier: GPL-2.0-or-later
"""C for commands and events: handler prototypes, marshalling, the command table, and functions that send events."""

from .names import c_name, c_string
from .output import Output


def parameters(arg, boxed):
    """The C parameters that carry the arguments of a command or event."""
    if not arg:
        return []
    if boxed:
        return [f'{arg.name} *arg']
    result = []
    for member in arg.all_members():
        if member.has:
            result.append(f'bool {member.has}')
        const = 'const ' if member.type.name == 'str' else ''
        result.append(f'{const}{member.type.c_member}{member.c_name}')
    return result


def prototype(command):
    ret = command.ret.c_member if command.ret else 'void '
    if not command.gen:
        return f'void qmp_{c_name(command.name)}(json_t *args, json_t **ret, Error **errp)'
    args = ', '.join(parameters(command.arg, command.boxed) + ['Error **errp'])
    return f'{ret}qmp_{c_name(command.name)}({args})'


def header(schema, module):
    out = Output(module, 'commands', 'h')
    out.include('qapi/dispatch.h')
    out.include(f'qapi/qapi-types-{module.name}.h')
    for command in schema.of(module, ('command',)):
        out.line(prototype(command) + ';')
        if command.gen:
            out.line(f'void qmp_marshal_{c_name(command.name)}(json_t *args, json_t **ret, Error **errp);')
    return out


def source(schema, module):
    out = Output(module, 'commands', 'c')
    out.include(f'qapi/qapi-visit-{module.name}.h')
    for command in schema.of(module, ('command',)):
        if command.gen:
            emit_marshal(out, command)
    return out


def emit_call(out, command):
    """The handler's call and what becomes of its result, four spaces inside the function."""
    values = []
    if command.arg:
        for member in [] if command.boxed else command.arg.all_members():
            values += [f'arg.{member.has}'] if member.has else []
            values.append(f'arg.{member.c_name}')
        if command.boxed:
            values = ['&arg']
    values.append('&err')
    call = f'qmp_{c_name(command.name)}({", ".join(values)})'
    if not command.ret:
        out.line(f'    {call};')
        out.line('    error_propagate(errp, err);')
        return
    out.line(f'    result = {call};')
    out.line('    if (err) {')
    out.line('        error_propagate(errp, err);')
    out.line('    } else {')
    out.line('        g_autoptr(Visitor) output = visitor_json_output_new();')
    out.line('')
    out.line(f'        {command.ret.c_visit}(output, NULL, &result, &error_abort);')
    out.line('        *ret = visitor_json_output_take(output);')
    if command.ret.pointer:
        out.line('        g_autoptr(Visitor) dealloc = visitor_dealloc_new();')
        out.line('')
        out.line(f'        {command.ret.c_visit}(dealloc, NULL, &result, NULL);')
    out.line('    }')


def emit_marshal(out, command):
    name = c_name(command.name)
    arg = command.arg
    if arg:
        out.line(f'''
static bool {name}_walk(Visitor *v, void *arg, Error **errp)
{{
    return {arg.c_visit}_members(v, arg, errp);
}}''')
    out.line(f'\nvoid qmp_marshal_{name}(json_t *args, json_t **ret, Error **errp)')
    out.line('{')
    out.line('    Error *err = NULL;')
    if command.ret:
        out.line(f'    {command.ret.c_member}result;')
    if arg:
        out.line(f'    {arg.name} arg = {{0}};')
    walk, storage = (f'{name}_walk', '&arg') if arg else ('NULL', 'NULL')
    out.line('')
    out.line(f'    if (!qapi_read_arguments(args, {walk}, {storage}, errp)) {{')
    out.line('        return;')
    out.line('    }')
    emit_call(out, command)
    if arg:
        out.line(f'    qapi_drop_arguments({name}_walk, &arg);')
    out.line('}')


def table_header():
    out = Output(Output.WHOLE, 'commands', 'h')
    out.include('qapi/dispatch.h')
    out.line('/* Every command, sorted as in the schema; the last entry has no name. */')
    out.line('extern const QmpCommand qmp_commands[];')
    return out


def table_source(schema):
    out = Output(Output.WHOLE, 'commands', 'c')
    out.line('const QmpCommand qmp_commands[] = {')
    for module in schema.modules:
        commands = schema.of(module, ('command',))
        if commands:
            out.include(f'qapi/qapi-commands-{module.name}.h')
        for command in commands:
            function = 'qmp_' + ('marshal_' if command.gen else '') + c_name(command.name)
            flags = [flag for key, flag in (('success-response', 'QMP_NO_SUCCESS_RESPONSE'),
                                            ('allow-oob', 'QMP_ALLOW_OOB'),
                                            ('allow-preconfig', 'QMP_ALLOW_PRECONFIG')) if command.flag(key)]
            out.line(f'    {{{c_string(command.name)}, {function}, {" | ".join(flags) or 0}}},')
    out.line('    {0},')
    out.line('};')
    return out


def event_prototype(event):
    args = ', '.join(parameters(event.arg, event.boxed)) or 'void'
    return f'void qapi_event_send_{c_name(event.name.lower())}({args})'


def events_header(schema, module):
    out = Output(module, 'events', 'h')
    out.include(f'qapi/qapi-types-{module.name}.h')
    for event in schema.of(module, ('event',)):
        out.line(event_prototype(event) + ';')
    return out


def events_source(schema, module):
    out = Output(module, 'events', 'c')
    out.include('qapi/dispatch.h')
    out.include(f'qapi/qapi-visit-{module.name}.h')
    for event in schema.of(module, ('event',)):
        emit_event(out, event)
    return out


def emit_event(out, event):
    arg = event.arg
    out.line('\n' + event_prototype(event))
    out.line('{')
    if not arg:
        out.line(f'    qapi_event_emit({c_string(event.name)}, NULL);')
        out.line('}')
        return
    pointer = 'arg' if event.boxed else '&arg'
    if not event.boxed:
        out.line(f'    {arg.name} arg = {{')
        for member in arg.all_members():
            if member.has:
                out.line(f'        .{member.has} = {member.has},')
            cast = '(char *)' if member.type.name == 'str' else ''
            out.line(f'        .{member.c_name} = {cast}{member.c_name},')
        out.line('    };')
    out.line('    g_autoptr(Visitor) v = visitor_json_output_new();')
    out.line('')
    out.line('    visit_open(v, NULL, &error_abort);')
    out.line(f'    {arg.c_visit}_members(v, {pointer}, &error_abort);')
    out.line('    visit_close(v);')
    out.line(f'    qapi_event_emit({c_string(event.name)}, visitor_json_output_take(v));')
    out.line('}')
