# SPDX-License-Identifier: GPL-2.0-or-later
"""The answer of query-qmp-schema: commands and events first, then the types that they use, named by numbers."""

import json

from .names import c_string
from .output import Output
from .schema import Array, Builtin, Object


class Introspection:
    """Collects entries; a type gets the next number when something first refers to it."""

    def __init__(self, schema):
        self.schema = schema
        self.used = []
        self.numbers = {}
        self.empty = Object(name='q_empty', checked=True)
        self.entries = []
        for meta in ('command', 'event'):
            for module in schema.modules:
                for item in schema.of(module, (meta,)):
                    getattr(self, meta)(item)
        for type_ in self.used:  # grows while this runs
            getattr(self, type_.meta)(type_)

    def use(self, type_):
        if isinstance(type_, Builtin):
            name = 'int' if type_.json_type == 'int' else type_.name
            self.remember(self.schema.types[name])
            return name
        if isinstance(type_, Array):
            if isinstance(type_.element, Builtin) and type_.element.json_type == 'int':
                type_ = self.schema.array_of(self.schema.types['int'])
            element = self.use(type_.element)
            self.remember(type_)
            return f'[{element}]'
        if type_.name not in self.numbers:
            self.numbers[type_.name] = str(len(self.numbers))
        self.remember(type_)
        return self.numbers[type_.name]

    def remember(self, type_):
        if type_ not in self.used:
            self.used.append(type_)

    def add(self, name, meta, features, **rest):
        entry = {'name': name, 'meta-type': meta}
        entry.update({key.replace('_', '-'): value for key, value in rest.items()})
        if features:
            entry['features'] = features
        self.entries.append(entry)

    def command(self, item):
        oob = {'allow_oob': True} if item.flag('allow-oob') else {}
        arg = self.use(item.arg or self.empty)
        self.add(item.name, 'command', item.features, arg_type=arg, ret_type=self.use(item.ret or self.empty), **oob)

    def event(self, item):
        self.add(item.name, 'event', item.features, arg_type=self.use(item.arg or self.empty))

    def builtin(self, item):
        self.add(item.name, 'builtin', [], json_type=item.json_type)

    def enum(self, item):
        members = [{'name': value.name, **({'features': value.features} if value.features else {})}
                   for value in item.live()]
        self.add(self.use(item), 'enum', item.features, members=members,
                 values=[value.name for value in item.live()])

    def array(self, item):
        self.add(self.use(item), 'array', [], element_type=self.use(item.element))

    def alternate(self, item):
        self.add(self.use(item), 'alternate', item.features,
                 members=[{'type': self.use(branch.type)} for branch in item.live_branches()])

    def object(self, item):
        rest = {'members': [self.member(member) for member in item.all_members()]}
        if item.tag:
            rest['tag'] = item.tag
            branches = {branch.name: branch.type for branch in item.live_branches()}
            rest['variants'] = [{'case': value.name, 'type': self.use(branches.get(value.name, self.empty))}
                                for value in item.find(item.tag).type.live()]
        self.add(self.use(item), 'object', item.features, **rest)

    def member(self, member):
        entry = {'name': member.name, 'type': self.use(member.type)}
        if member.optional:
            entry['default'] = None
        if member.features:
            entry['features'] = member.features
        return entry


def header():
    out = Output(Output.WHOLE, 'introspect', 'h')
    out.include('qapi/json.h')
    out.line('/* The value that query-qmp-schema returns, as JSON text: one string for each entry, NULL at the end. */')
    out.line('extern const char *const qapi_schema_entries[];')
    return out


def source(schema):
    out = Output(Output.WHOLE, 'introspect', 'c')
    out.line('const char *const qapi_schema_entries[] = {')
    for entry in Introspection(schema).entries:
        out.line(f'    {c_string(json.dumps(entry))},')
    out.line('    NULL,')
    out.line('};')
    return out
