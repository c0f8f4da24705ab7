# SPDX-License-Identifier: GPL-2.0-or-later
"""The text of schema files: tokens, literals, include and pragma, and the pairing of comments with definitions."""

import os
import re


class SchemaError(Exception):
    """What is wrong in a schema, and where."""

    def __init__(self, path, line, message):
        super().__init__(f'{path}:{line}: {message}')


class LDict(dict):
    """A literal dict that knows its line and its keys' lines."""

    def __init__(self, line):
        super().__init__()
        self.line = line
        self.lines = {}


class LList(list):
    """A literal list that knows its line and its items' lines."""

    def __init__(self, line):
        super().__init__()
        self.line = line
        self.lines = []


class Definition:
    """One top-level expression with the comment in front of it (None without one)."""

    def __init__(self, module, expr, doc):
        self.module = module
        self.expr = expr
        self.doc = doc

    def error(self, message, line=None):
        return SchemaError(self.module.path, line or self.expr.line, message)


class Module:
    """One schema file."""

    def __init__(self, path, name):
        self.path = path
        self.name = name
        self.includes = []
        self.definitions = []


TOKEN = re.compile(r'''
    (?P<space>[ \n]+)
  | (?P<doc>\#\#(?:\n\#.*)*?\n\#\#[ ]*(?=\n|\Z))
  | (?P<comment>\#.*)
  | (?P<punct>[{}\[\]:,])
  | (?P<string>'(?:[^'\\\n]|\\.)*')
  | (?P<word>[A-Za-z]+)
''', re.VERBOSE)

PRAGMAS = {
    'doc-required': bool,
    'command-name-exceptions': list,
    'command-returns-exceptions': list,
    'documentation-exceptions': list,
    'member-name-exceptions': list,
}


class Loader:
    """Reads the main schema file and everything that it includes, each file once."""

    def __init__(self):
        self.modules = []
        self.pragma = {key: kind() for key, kind in PRAGMAS.items()}
        self.loaded = {}

    def load(self, path):
        real = os.path.realpath(path)
        if real in self.loaded:
            return self.loaded[real]
        name = os.path.splitext(os.path.basename(path))[0]
        if any(module.name == name for module in self.loaded.values()):
            raise SchemaError(path, 1, f"another file of the schema is also called '{name}'")
        module = Module(path, name)
        self.loaded[real] = module
        with open(path, encoding='utf-8') as file:
            parser = Parser(module, file.read(), self)
        parser.run()
        if module.definitions:
            self.modules.append(module)
        return module


class Parser:
    """A recursive-descent parser for one file."""

    def __init__(self, module, text, loader):
        self.module = module
        self.text = text
        self.loader = loader
        self.pos = 0
        self.line = 1
        self.kind = self.value = None
        self.token_line = 1
        self.pending_doc = None

    def error(self, message, line=None):
        return SchemaError(self.module.path, line or self.token_line, message)

    def advance(self):
        """Step to the next token; comments of the '##' kind are tokens between definitions only."""
        while True:
            self.token_line = self.line
            if self.pos == len(self.text):
                self.kind, self.value = 'end', 'end of file'
                return
            match = TOKEN.match(self.text, self.pos)
            if not match:
                raise self.error(f'stray {self.text[self.pos]!r}')
            self.kind, self.value = match.lastgroup, match.group()
            if self.kind == 'comment' and self.value.startswith('##') and self.value.strip() == '##':
                raise self.error("documentation comment has no closing '##'")
            self.pos = match.end()
            self.line += self.value.count('\n')
            if self.kind not in ('space', 'comment'):
                return

    def run(self):
        self.advance()
        while self.kind != 'end':
            if self.kind == 'doc':
                self.take_doc()
                continue
            if self.value != '{':
                raise self.error(f"expected a definition, which starts with '{{', not {self.value}")
            self.top_level(self.parse_dict())
        self.reject_pending_doc()

    def take_doc(self):
        self.reject_pending_doc()
        doc = (self.value, self.token_line)
        lines = self.value.split('\n')
        if len(lines) > 2 and lines[1].startswith('# @'):
            self.pending_doc = doc
        self.advance()

    def reject_pending_doc(self):
        if self.pending_doc:
            raise self.error('documentation comment is not followed by its definition', self.pending_doc[1])

    def top_level(self, expr):
        if 'include' in expr or 'pragma' in expr:
            self.reject_pending_doc()
            key = 'include' if 'include' in expr else 'pragma'
            if len(expr) != 1:
                raise self.error(f"'{key}' takes no other keys", expr.line)
            getattr(self, key)(expr[key], expr.line)
            return
        self.module.definitions.append(Definition(self.module, expr, self.pending_doc))
        self.pending_doc = None

    def include(self, name, line):
        if not isinstance(name, str):
            raise self.error("'include' needs a file name", line)
        path = os.path.join(os.path.dirname(self.module.path), name)
        if not os.path.isfile(path):
            raise self.error(f"cannot read the included file '{name}'", line)
        module = self.loader.load(path)
        if module.definitions and module not in self.module.includes:
            self.module.includes.append(module)

    def pragma(self, settings, line):
        if not isinstance(settings, dict):
            raise self.error("'pragma' needs a dict", line)
        for key, value in settings.items():
            kind = PRAGMAS.get(key)
            if kind is None:
                raise self.error(f"unknown pragma '{key}'", settings.lines[key])
            if kind is bool:
                if not isinstance(value, bool):
                    raise self.error(f"pragma '{key}' needs true or false", settings.lines[key])
                self.loader.pragma[key] = value
            else:
                if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
                    raise self.error(f"pragma '{key}' needs a list of names", settings.lines[key])
                self.loader.pragma[key] += value

    def expect(self, value, where):
        if self.value != value:
            raise self.error(f"expected '{value}' {where}, not {self.value}")
        self.advance()

    def parse_dict(self):
        result = LDict(self.token_line)
        self.advance()
        while self.value != '}':
            if self.kind != 'string':
                raise self.error(f'expected a quoted key, not {self.value}')
            line, key = self.token_line, self.parse_string()
            if key in result:
                raise self.error(f"duplicate key '{key}'", line)
            self.expect(':', 'after a key')
            result.lines[key] = line
            result[key] = self.parse_value()
            if not self.separator('}', 'in a dict'):
                break
        self.advance()
        return result

    def parse_list(self):
        result = LList(self.token_line)
        self.advance()
        while self.value != ']':
            result.lines.append(self.token_line)
            result.append(self.parse_value())
            if not self.separator(']', 'in a list'):
                break
        self.advance()
        return result

    def separator(self, closing, where):
        """True if another element follows; the current token is then that element's first."""
        if self.value == closing:
            return False
        self.expect(',', f"or '{closing}' {where}")
        if self.value == closing:
            raise self.error(f"expected an element after ',' {where}")
        return True

    def parse_string(self):
        body = self.value[1:-1]
        bad = re.search(r'\\[^\\\'"]|[^ -~]', body)
        if bad:
            raise self.error(f'string has an unsupported character or escape {bad.group()!r}')
        self.advance()
        return re.sub(r'\\(.)', r'\1', body)

    def parse_value(self):
        if self.value == '{':
            return self.parse_dict()
        if self.value == '[':
            return self.parse_list()
        if self.kind == 'string':
            return self.parse_string()
        if self.value in ('true', 'false'):
            value = self.value == 'true'
            self.advance()
            return value
        raise self.error(f"expected a dict, a list, a string, true or false, not {self.value}")
