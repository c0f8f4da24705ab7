# SPDX-License-Identifier: GPL-2.0-or-later
"""The shape of definitions: which keys each kind takes and how their values look, before any name is resolved."""

import re

COMMON = {'if', 'features'}
KINDS = {
    'enum': ({'data'}, {'prefix'}),
    'struct': ({'data'}, {'base'}),
    'union': ({'base', 'discriminator', 'data'}, set()),
    'alternate': ({'data'}, set()),
    'command': (set(), {'data', 'returns', 'boxed', 'gen', 'success-response', 'allow-oob', 'allow-preconfig',
                        'coroutine'}),
    'event': (set(), {'data', 'boxed'}),
}
FLAGS = {'boxed': True, 'gen': False, 'success-response': False, 'allow-oob': True, 'allow-preconfig': True,
         'coroutine': True}

TYPE_NAME = re.compile(r'(__[a-z0-9.-]+_)?[A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*')
EVENT_NAME = re.compile(r'(__[a-z0-9.-]+_)?[A-Z][A-Z0-9_]*')
LOWER_NAME = re.compile(r'(__[a-z0-9.-]+_)?(x-)?[a-z][a-z0-9-]*')
LOOSE_NAME = re.compile(r'(__[a-z0-9.-]+_)?[A-Za-z][A-Za-z0-9_-]*')
ENUM_VALUE = re.compile(r'(__[a-z0-9.-]+_)?[a-z0-9][a-z0-9-]*')
LOOSE_VALUE = re.compile(r'(__[a-z0-9.-]+_)?[A-Za-z0-9][A-Za-z0-9_-]*')
OPTION_NAME = re.compile(r'[A-Z][A-Z0-9_]*')


class Shapes:
    """Checks every definition; @options maps the names that 'if' may use to whether they are on."""

    def __init__(self, pragma, options):
        self.pragma = pragma
        self.options = options

    def check(self, definition):
        """Check one definition and return its kind and name."""
        expr = definition.expr
        kinds = [kind for kind in KINDS if kind in expr]
        if len(kinds) != 1:
            raise definition.error("a definition needs exactly one of 'enum', 'struct', 'union', 'alternate', "
                                   "'command' and 'event'" if not kinds else
                                   f"'{kinds[0]}' and '{kinds[1]}' in one definition")
        kind = kinds[0]
        name = expr[kind]
        if not isinstance(name, str):
            raise definition.error(f"'{kind}' needs a string as name", expr.lines[kind])
        self.check_keys(definition, kind, name)
        self.check_name(definition, kind, name)
        self.present(definition, expr)
        self.features(definition, expr)
        self.check_flags(definition, expr)
        getattr(self, 'check_' + kind)(definition, name)
        return kind, name

    def check_keys(self, definition, kind, name):
        expr = definition.expr
        required, optional = KINDS[kind]
        for key in expr:
            if key not in required | optional | COMMON | {kind}:
                raise definition.error(f"{kind} '{name}' has an unknown key '{key}'", expr.lines[key])
        for key in sorted(required):
            if key not in expr:
                raise definition.error(f"{kind} '{name}' lacks the key '{key}'")

    def check_name(self, definition, kind, name):
        line = definition.expr.lines[kind]
        if kind == 'command':
            loose = name in self.pragma['command-name-exceptions']
            if not (LOOSE_NAME if loose else LOWER_NAME).fullmatch(name):
                raise definition.error(f"command name '{name}' must be lower-case words joined by '-'", line)
        elif kind == 'event':
            if not EVENT_NAME.fullmatch(name):
                raise definition.error(f"event name '{name}' must be upper-case words joined by '_'", line)
        elif not TYPE_NAME.fullmatch(name):
            raise definition.error(f"type name '{name}' must be in CamelCase", line)
        elif name.endswith(('List', 'Kind')) or name == 'QType':
            raise definition.error(f"type name '{name}' is reserved for generated types", line)

    def check_flags(self, definition, expr):
        for key, only in FLAGS.items():
            if key in expr and expr[key] is not only:
                raise definition.error(f"'{key}' may only be {str(only).lower()}", expr.lines[key])

    # Conditions

    def present(self, definition, item):
        """The value of the 'if' of @item, a dict; true without one."""
        if 'if' not in item:
            return True
        return self.condition(definition, item['if'], item.lines['if'])

    def condition(self, definition, cond, line):
        if isinstance(cond, str):
            if not OPTION_NAME.fullmatch(cond):
                raise definition.error(f"'if' needs the name of a build option, not '{cond}'", line)
            if cond not in self.options:
                raise definition.error(f"'if' names an unknown build option '{cond}'", line)
            return self.options[cond]
        if not isinstance(cond, dict) or len(cond) != 1 or next(iter(cond)) not in ('all', 'any', 'not'):
            raise definition.error("'if' needs a name, or a dict with one of 'all', 'any' and 'not'", line)
        (operator, operand), = cond.items()
        if operator == 'not':
            return not self.condition(definition, operand, line)
        if not isinstance(operand, list) or not operand:
            raise definition.error(f"'{operator}' in 'if' needs a list that is not empty", line)
        values = [self.condition(definition, item, line) for item in operand]
        return all(values) if operator == 'all' else any(values)

    # Parts that several kinds share

    def named_items(self, definition, items, what, optional_keys, pattern):
        """Check a list of names or {'name': ..., 'if': ...}; return [(name, item or None, line)]."""
        if not isinstance(items, list):
            raise definition.error(f'{what}s must be a list')
        result = []
        for item, line in zip(items, items.lines):
            if isinstance(item, str):
                name, item = item, None
            else:
                if not isinstance(item, dict) or not isinstance(item.get('name'), str):
                    raise definition.error(f"a {what} must be a name or a dict with a 'name'", line)
                for key in item:
                    if key not in optional_keys | {'name'}:
                        raise definition.error(f"{what} '{item['name']}' has an unknown key '{key}'", line)
                name = item['name']
                self.present(definition, item)
            if not pattern.fullmatch(name):
                raise definition.error(f"'{name}' is not a valid {what} name", line)
            if any(name == other for other, _, _ in result):
                raise definition.error(f"duplicate {what} '{name}'", line)
            result.append((name, item, line))
        return result

    def features(self, definition, item):
        """[(name, present)] for the features of a definition or member."""
        if 'features' not in item:
            return []
        found = self.named_items(definition, item['features'], 'feature', {'if'}, LOWER_NAME)
        return [(name, sub is None or self.present(definition, sub)) for name, sub, _ in found]

    def type_ref(self, definition, ref, line, what, array=True):
        """A type name, or a list with one."""
        if isinstance(ref, str):
            return
        if not array or not isinstance(ref, list):
            raise definition.error(f"{what} must be the name of a type{' or [NAME]' if array else ''}", line)
        if len(ref) != 1 or not isinstance(ref[0], str):
            raise definition.error(f'{what}: an array type is a list with exactly one name', line)

    def members(self, definition, owner, data, loose):
        """Check an inline dict of members."""
        for key, value in data.items():
            line = data.lines[key]
            name = key[1:] if key.startswith('*') else key
            if not (LOOSE_NAME if loose else LOWER_NAME).fullmatch(name):
                raise definition.error(f"member name '{key}' of '{owner}' must be lower-case words joined by '-'",
                                       line)
            if name == 'u' or name.startswith(('has-', 'has_', 'q-')):
                raise definition.error(f"member name '{name}' of '{owner}' is reserved for generated code", line)
            self.member_value(definition, f"member '{name}' of '{owner}'", value, line, {'if', 'features'})

    def member_value(self, definition, what, value, line, keys, array=True):
        if isinstance(value, dict):
            for key in value:
                if key not in keys | {'type'}:
                    raise definition.error(f"{what} has an unknown key '{key}'", value.lines[key])
            if 'type' not in value:
                raise definition.error(f"{what} lacks the key 'type'", line)
            self.present(definition, value)
            self.features(definition, value)
            value = value['type']
        self.type_ref(definition, value, line, what, array)

    def is_loose(self, name):
        return name in self.pragma['member-name-exceptions']

    def data(self, definition, kind, name, ref=True):
        """The 'data' of a struct, command or event: a dict of members, or where @ref the name of a type."""
        expr = definition.expr
        data = expr.get('data')
        if data is None:
            return
        if isinstance(data, dict):
            self.members(definition, name, data, self.is_loose(name))
        elif not ref or not isinstance(data, str):
            allowed = ' or the name of a type' if ref else ''
            raise definition.error(f"'data' of {kind} '{name}' must be a dict{allowed}", expr.lines['data'])

    # One function a kind

    def check_enum(self, definition, name):
        expr = definition.expr
        pattern = LOOSE_VALUE if self.is_loose(name) else ENUM_VALUE
        for value, item, line in self.named_items(definition, expr['data'], 'enum value', {'if', 'features'},
                                                  pattern):
            if item is not None:
                self.features(definition, item)
            if value == 'max':
                raise definition.error("enum value 'max' is reserved for generated code", line)
        prefix = expr.get('prefix')
        if prefix is not None and (not isinstance(prefix, str) or not OPTION_NAME.fullmatch(prefix)):
            raise definition.error(f"'prefix' of enum '{name}' must be an upper-case name", expr.lines['prefix'])

    def check_struct(self, definition, name):
        self.data(definition, 'struct', name, ref=False)
        if 'base' in definition.expr and not isinstance(definition.expr['base'], str):
            raise definition.error(f"'base' of struct '{name}' must be the name of a struct",
                                   definition.expr.lines['base'])

    def check_union(self, definition, name):
        expr = definition.expr
        base = expr['base']
        if isinstance(base, dict):
            self.members(definition, name, base, self.is_loose(name))
        elif not isinstance(base, str):
            raise definition.error(f"'base' of union '{name}' must be a dict or the name of a struct",
                                   expr.lines['base'])
        if not isinstance(expr['discriminator'], str):
            raise definition.error(f"'discriminator' of union '{name}' must be the name of a member",
                                   expr.lines['discriminator'])
        self.branches(definition, 'union', name, {'if'}, array=False)

    def check_alternate(self, definition, name):
        self.branches(definition, 'alternate', name, {'if'}, array=True)

    def branches(self, definition, kind, name, keys, array):
        data = definition.expr['data']
        if not isinstance(data, dict) or not data:
            raise definition.error(f"'data' of {kind} '{name}' must be a dict that is not empty",
                                   definition.expr.lines['data'])
        for key, value in data.items():
            if not LOOSE_VALUE.fullmatch(key):
                raise definition.error(f"'{key}' is not a valid name for a branch of '{name}'", data.lines[key])
            self.member_value(definition, f"branch '{key}' of '{name}'", value, data.lines[key], keys, array)

    def check_command(self, definition, name):
        expr = definition.expr
        self.data(definition, 'command', name)
        if 'returns' in expr:
            self.type_ref(definition, expr['returns'], expr.lines['returns'], f"'returns' of command '{name}'")
        self.boxed(definition, 'command', name)

    def check_event(self, definition, name):
        self.data(definition, 'event', name)
        self.boxed(definition, 'event', name)

    def boxed(self, definition, kind, name):
        expr = definition.expr
        if 'boxed' in expr and 'data' not in expr:
            raise definition.error(f"'boxed' {kind} '{name}' needs 'data'", expr.lines['boxed'])
