# SPDX-License-Identifier: GPL-2.0-or-later
"""The resolved schema: types, commands and events with all names looked up and all rules that need that checked."""

from dataclasses import dataclass, field

from . import docs
from .expr import Shapes
from .names import c_name, enum_constant
from .syntax import Loader

BUILTINS = {
    # name: (C type, JSON type as introspection names it, kind of JSON value, for alternates)
    'str': ('char *', 'string', 'QTYPE_QSTRING'),
    'number': ('double ', 'number', 'QTYPE_QNUM'),
    'int': ('int64_t ', 'int', 'QTYPE_QNUM'),
    'int8': ('int8_t ', 'int', 'QTYPE_QNUM'),
    'int16': ('int16_t ', 'int', 'QTYPE_QNUM'),
    'int32': ('int32_t ', 'int', 'QTYPE_QNUM'),
    'int64': ('int64_t ', 'int', 'QTYPE_QNUM'),
    'uint8': ('uint8_t ', 'int', 'QTYPE_QNUM'),
    'uint16': ('uint16_t ', 'int', 'QTYPE_QNUM'),
    'uint32': ('uint32_t ', 'int', 'QTYPE_QNUM'),
    'uint64': ('uint64_t ', 'int', 'QTYPE_QNUM'),
    'size': ('uint64_t ', 'int', 'QTYPE_QNUM'),
    'bool': ('bool ', 'boolean', 'QTYPE_QBOOL'),
    'any': ('json_t *', 'value', None),
    'null': ('json_t *', 'null', 'QTYPE_QNULL'),
}


@dataclass
class Type:
    name: str
    module: object = None
    meta: str = ''
    features: list = field(default_factory=list)
    present: bool = True

    @property
    def pointer(self):
        """Does a member of this type hold a pointer, so that NULL can say "absent"?"""
        return self.c_member.endswith('*')

    @property
    def c_member(self):
        return f'{self.name} *'

    @property
    def c_visit(self):
        return f'visit_type_{self.name}'


@dataclass
class Builtin(Type):
    meta: str = 'builtin'

    @property
    def c_member(self):
        return BUILTINS[self.name][0]

    @property
    def json_type(self):
        return BUILTINS[self.name][1]


@dataclass
class EnumValue:
    name: str
    features: list
    present: bool


@dataclass
class Enum(Type):
    meta: str = 'enum'
    values: list = field(default_factory=list)
    prefix: str = None

    @property
    def c_member(self):
        return f'{self.name} '

    def live(self):
        return [value for value in self.values if value.present]


@dataclass
class Array(Type):
    meta: str = 'array'
    element: Type = None


@dataclass
class Member:
    name: str
    type: Type
    optional: bool
    features: list
    present: bool
    line: int

    @property
    def c_name(self):
        return c_name(self.name)

    @property
    def has(self):
        """The flag beside an optional member that is no pointer."""
        return f'has_{c_name(self.name, protect=False)}' if self.optional and not self.type.pointer else None


@dataclass
class Branch:
    name: str
    type: Type
    present: bool

    @property
    def c_name(self):
        return c_name(self.name)


@dataclass
class Object(Type):
    meta: str = 'object'
    base: Type = None
    members: list = field(default_factory=list)
    tag: str = None
    branches: list = field(default_factory=list)
    implicit: bool = False
    checked: object = None  # None, then False while its members are being resolved, then True

    def own(self):
        return [member for member in self.members if member.present]

    def all_members(self):
        return (self.base.all_members() if self.base else []) + self.own()

    def live_branches(self):
        return [branch for branch in self.branches if branch.present]

    def find(self, name):
        return next((member for member in self.all_members() if member.name == name), None)

    @property
    def empty(self):
        return not self.all_members() and not self.live_branches()


@dataclass
class Alternate(Type):
    meta: str = 'alternate'
    branches: list = field(default_factory=list)

    def live_branches(self):
        return [branch for branch in self.branches if branch.present]


@dataclass
class Command:
    name: str
    module: object
    arg: Object
    ret: Type
    expr: dict
    features: list
    present: bool
    meta: str = 'command'

    @property
    def boxed(self):
        return 'boxed' in self.expr

    @property
    def gen(self):
        return 'gen' not in self.expr

    def flag(self, name):
        return name in self.expr


@dataclass
class Event:
    name: str
    module: object
    arg: Object
    expr: dict
    features: list
    present: bool
    meta: str = 'event'

    @property
    def boxed(self):
        return 'boxed' in self.expr


class Schema:
    """Everything in the main file at @path; @options maps build options to booleans."""

    def __init__(self, path, options):
        loader = Loader()
        loader.load(path)
        self.modules = loader.modules
        self.pragma = loader.pragma
        self.shapes = Shapes(self.pragma, options)
        self.types = {name: Builtin(name) for name in BUILTINS}
        self.arrays = {}
        for builtin in list(self.types.values()):  # all, so that these files are the same for every schema
            self.array_of(builtin)
        self.entities = []  # commands, events and types in the order of the files
        self.definitions = {}
        definitions = [item for module in self.modules for item in module.definitions]
        declared = [(item, *self.shapes.check(item)) for item in definitions]
        for item, kind, name in declared:
            self.declare(item, kind, name)
        for item, kind, name in declared:
            getattr(self, 'resolve_' + kind)(item, name)
        for item, kind, name in declared:
            self.check_doc(item, kind, name)

    # Names

    def declare(self, item, kind, name):
        """Make every type known before any reference is looked up."""
        if name in self.definitions or name in self.types:
            raise item.error(f"'{name}' is already defined", item.expr.lines[kind])
        self.definitions[name] = item
        common = {'name': name, 'module': item.module, 'present': self.shapes.present(item, item.expr),
                  'features': self.live_features(item, item.expr)}
        if kind == 'enum':
            self.types[name] = Enum(**common)
        elif kind in ('struct', 'union'):
            self.types[name] = Object(**common)
        elif kind == 'alternate':
            self.types[name] = Alternate(**common)
        if name in self.types:
            self.entities.append(self.types[name])

    def live_features(self, item, source):
        if not isinstance(source, dict):
            return []
        return [name for name, present in self.shapes.features(item, source) if present]

    def lookup(self, item, ref, line, what):
        if isinstance(ref, list):
            element = self.lookup(item, ref[0], line, what)
            return self.array_of(element)
        found = self.types.get(ref)
        if not found:
            raise item.error(f"{what} has the unknown type '{ref}'", line)
        return found

    def array_of(self, element):
        if element.name not in self.arrays:
            self.arrays[element.name] = Array(name=element.name + 'List', module=element.module, element=element)
        return self.arrays[element.name]

    def lookup_object(self, item, ref, line, what):
        found = self.lookup(item, ref, line, what)
        if not isinstance(found, Object):
            raise item.error(f"{what} must be a struct or union, but '{ref}' is not", line)
        return found

    # Members

    def make_members(self, item, owner, data):
        members = []
        for key, value in data.items():
            line = data.lines[key]
            name = key.lstrip('*')
            ref = value['type'] if isinstance(value, dict) else value
            member = Member(name, self.lookup(item, ref, line, f"member '{name}' of '{owner}'"), key.startswith('*'),
                            self.live_features(item, value),
                            not isinstance(value, dict) or self.shapes.present(item, value), line)
            members.append(member)
        return members

    def check_clashes(self, item, owner, inherited, members):
        seen = {member.c_name: member.name for member in inherited}
        for member in members:
            if member.c_name in seen:
                raise item.error(f"member '{member.name}' of '{owner}' clashes with member '{seen[member.c_name]}'",
                                 member.line)
            seen[member.c_name] = member.name

    def make_branches(self, item, name, array):
        data = item.expr['data']
        branches = []
        for key, value in data.items():
            ref = value['type'] if isinstance(value, dict) else value
            present = not isinstance(value, dict) or self.shapes.present(item, value)
            for branch in branches:
                if branch.c_name == c_name(key):
                    raise item.error(f"branch '{key}' of '{name}' clashes with branch '{branch.name}'",
                                     data.lines[key])
            branches.append(Branch(key, self.lookup(item, ref, data.lines[key], f"branch '{key}' of '{name}'"),
                                   present))
        return branches

    # One function a kind

    def resolve_enum(self, item, name):
        enum = self.types[name]
        enum.prefix = item.expr.get('prefix')
        constants = {}
        data = item.expr['data']
        for value, line in zip(data, data.lines):
            sub = value if isinstance(value, dict) else None
            text = value['name'] if sub else value
            constant = enum_constant(enum, text)
            if constant in constants:
                raise item.error(f"value '{text}' of '{name}' clashes with value '{constants[constant]}'", line)
            constants[constant] = text
            enum.values.append(EnumValue(text, self.live_features(item, sub),
                                         not sub or self.shapes.present(item, sub)))

    def complete(self, item, obj):
        """Resolve a base before its users; catches a struct that is its own base."""
        if obj.checked is False:
            raise item.error(f"'{obj.name}' is its own base")
        if obj.checked is None:
            definition = self.definitions[obj.name]
            kind = 'struct' if 'struct' in definition.expr else 'union'
            getattr(self, 'resolve_' + kind)(definition, obj.name)

    def take_base(self, item, obj):
        ref = item.expr.get('base')
        if ref is None or isinstance(ref, dict):
            return
        line = item.expr.lines['base']
        base = self.lookup_object(item, ref, line, f"'base' of '{obj.name}'")
        self.complete(item, base)
        if base.tag:
            raise item.error(f"'base' of '{obj.name}' must be a struct, but '{ref}' is a union", line)
        obj.base = base

    def resolve_struct(self, item, name):
        obj = self.types[name]
        if obj.checked:
            return
        obj.checked = False
        self.take_base(item, obj)
        obj.members = self.make_members(item, name, item.expr['data'])
        self.check_clashes(item, name, obj.base.all_members() if obj.base else [], obj.members)
        obj.checked = True

    def resolve_union(self, item, name):
        obj = self.types[name]
        if obj.checked:
            return
        obj.checked = False
        expr = item.expr
        self.take_base(item, obj)
        if isinstance(expr['base'], dict):
            obj.members = self.make_members(item, name, expr['base'])
            self.check_clashes(item, name, [], obj.members)
        tag = obj.find(expr['discriminator'])
        line = expr.lines['discriminator']
        if not tag:
            raise item.error(f"discriminator '{expr['discriminator']}' of '{name}' is not a member of its base", line)
        if not isinstance(tag.type, Enum):
            raise item.error(f"discriminator '{tag.name}' of '{name}' must be an enum", line)
        if tag.optional:
            raise item.error(f"discriminator '{tag.name}' of '{name}' must not be optional", line)
        obj.tag = tag.name
        obj.branches = self.make_branches(item, name, False)
        self.check_branches(item, obj, tag)
        obj.checked = True

    def check_branches(self, item, obj, tag):
        values = {value.name: value for value in tag.type.values}
        for branch in obj.branches:
            line = item.expr['data'].lines[branch.name]
            if branch.name not in values:
                raise item.error(f"branch '{branch.name}' of '{obj.name}' is not a value of enum '{tag.type.name}'",
                                 line)
            if not isinstance(branch.type, Object):
                raise item.error(f"branch '{branch.name}' of '{obj.name}' must be a struct or union", line)
            self.complete(item, branch.type)
            branch.present = branch.present and values[branch.name].present
            for member in branch.type.all_members():
                if any(member.c_name == other.c_name for other in obj.all_members()):
                    raise item.error(f"branch '{branch.name}' of '{obj.name}' clashes with the member "
                                     f"'{member.name}' of its base", line)

    def resolve_alternate(self, item, name):
        alternate = self.types[name]
        alternate.branches = self.make_branches(item, name, True)
        taken = {}
        for branch in alternate.branches:
            line = item.expr['data'].lines[branch.name]
            kind = json_kind(branch.type)
            if kind is None:
                raise item.error(f"branch '{branch.name}' of '{name}' cannot be of type '{branch.type.name}'", line)
            if kind in taken:
                raise item.error(f"branch '{branch.name}' of '{name}' cannot be told from branch '{taken[kind]}'",
                                 line)
            taken[kind] = branch.name

    def argument(self, item, name):
        """The 'data' of a command or event as an object type, None without arguments."""
        data = item.expr.get('data')
        if data is None:
            return None
        line = item.expr.lines['data']
        if isinstance(data, str):
            found = self.lookup_object(item, data, line, f"'data' of '{name}'")
            self.complete(item, found)
            if found.tag and 'boxed' not in item.expr:
                raise item.error(f"'data' of '{name}' is the union '{data}', which needs 'boxed'", line)
            return found
        if 'boxed' in item.expr:
            raise item.error(f"'boxed' '{name}' needs the name of a type as 'data'", item.expr.lines['boxed'])
        obj = Object(name=f'q_obj_{c_name(name)}_arg', module=item.module, implicit=True, checked=True)
        obj.members = self.make_members(item, name, data)
        self.check_clashes(item, name, [], obj.members)
        return obj if obj.members else None

    def resolve_command(self, item, name):
        expr = item.expr
        ret = None
        if 'returns' in expr:
            line = expr.lines['returns']
            ret = self.lookup(item, expr['returns'], line, f"'returns' of command '{name}'")
            element = ret.element if isinstance(ret, Array) else ret
            if not isinstance(element, Object) and name not in self.pragma['command-returns-exceptions']:
                raise item.error(f"command '{name}' may only return an object or a list of objects", line)
        self.entities.append(Command(name, item.module, self.argument(item, name), ret, expr,
                                     self.live_features(item, expr), self.shapes.present(item, expr)))

    def resolve_event(self, item, name):
        self.entities.append(Event(name, item.module, self.argument(item, name), item.expr,
                                   self.live_features(item, item.expr), self.shapes.present(item, item.expr)))

    # Documentation

    def check_doc(self, item, kind, name):
        if not item.doc:
            if self.pragma['doc-required']:
                raise item.error(f"{kind} '{name}' has no documentation comment")
            return
        expr = item.expr
        if kind == 'enum':
            data = expr['data']
            sources = [(value['name'], value) if isinstance(value, dict) else (value, None) for value in data]
        else:
            data = expr.get('base' if kind == 'union' else 'data')
            sources = [(key.lstrip('*'), value) for key, value in data.items()] if isinstance(data, dict) else []
        features = [name for name, _ in self.shapes.features(item, expr)]
        for _, value in sources:
            if isinstance(value, dict):
                features += [name for name, _ in self.shapes.features(item, value) if name not in features]
        docs.check(item, kind, name, [name for name, _ in sources], features, 'returns' in expr,
                   name in self.pragma['documentation-exceptions'])

    # What the emitters ask for

    def of(self, module, meta):
        """The entities of one module with one of the kinds in @meta, those left out by 'if' excluded."""
        return [item for item in self.entities if item.module is module and item.meta in meta and item.present]

    def arrays_of(self, module):
        return [array for array in self.arrays.values() if array.module is module and array.element.present]

    def arguments_of(self, module):
        return [item.arg for item in self.of(module, ('command', 'event')) if item.arg and item.arg.implicit]


def json_kind(type_):
    """Which kind of JSON value a type is, for alternates; None if that is not settled."""
    if isinstance(type_, Builtin):
        return BUILTINS[type_.name][2]
    return {'enum': 'QTYPE_QSTRING', 'object': 'QTYPE_QDICT', 'array': 'QTYPE_QLIST'}.get(type_.meta)
