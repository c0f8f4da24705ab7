# SPDX-License-Identifier: GPL-2.0-or-later
"""Bounds of definitions: functions, structs, enums, variables, prototypes.

At file level a definition ends at its semicolon or closing brace, and also at
a blank line, a comment or a preprocessor line: macros such as type_init(x)
stand without a semicolon and must not become part of what follows them.
"""

import re

from . import PortError, Refused
from .lex import CLOSE, OPEN, Span

KINDS = ('function', 'struct', 'enum', 'variable', 'prototype', 'typedef',
         'macro')


class Definition(Span):
    """One definition; body is its brace range."""

    def __init__(self, source, first, last, body):
        super().__init__(source, first, last)
        self.body = body        # (index of '{', index of '}') or None

    def texts(self, upto=None):
        upto = self.last + 1 if upto is None else upto
        return [t.text for t in self.source.code[self.first:upto]]


def _parted(source, one, two):
    """Is there a blank line or a comment between two tokens?"""
    gap = source.text[one.end:two.start]
    return '/*' in gap or '//' in gap or '\n\n' in gap


def _flush(source, found, first, last, body):
    if first is not None:
        found.append(Definition(source, first, last, body))


def _depth_after(line, depth, branches):
    """Brace depth after a preprocessor line: every branch of an #if begins at
    the depth that the #if was at, lest braces in both count twice."""
    word = re.match(r'\s*#\s*(\w*)', line).group(1)
    if word in ('if', 'ifdef', 'ifndef'):
        branches.append(depth)
    elif word in ('else', 'elif') and branches:
        return branches[-1]
    elif word == 'endif' and branches:
        branches.pop()
    return depth


def definitions(source):
    """The file-level definitions, in order; preprocessor lines too."""
    found, code, branches = [], source.code, []
    first, body, depth, previous = None, None, 0, None
    for index, tok in enumerate(code):
        if depth == 0 and (tok.kind == 'pp' or
                           (previous and _parted(source, previous, tok))):
            _flush(source, found, first, index - 1, body)
            first, body = None, None
        previous = tok
        if tok.kind == 'pp':
            if depth == 0:
                found.append(Definition(source, index, index, None))
            depth = _depth_after(tok.text, depth, branches)
            continue
        if first is None:
            first = index
        if tok.text in OPEN:
            if depth == 0 and tok.text == '{':
                body = (index, None)
            depth += 1
        elif tok.text in CLOSE:
            depth = max(0, depth - 1)
            if depth == 0 and tok.text == '}':
                body = (body[0], index) if body else None
                if body and code[body[0] - 1].text == ')':
                    _flush(source, found, first, index, body)
                    first, body = None, None
        elif tok.text == ';' and depth == 0:
            _flush(source, found, first, index, body)
            first, body = None, None
    _flush(source, found, first, len(code) - 1, body)
    return found


def _declared_name(texts):
    """The name before the first parenthesis: that of a function."""
    if '(' in texts:
        at = texts.index('(')
        return texts[at - 1] if at else None
    return None


def _is(definition, kind, name):
    texts = definition.texts()
    head = definition.texts(definition.body[0]) if definition.body else texts
    if kind == 'macro':
        return texts[0].split()[:2] == ['#define', name] or (
            texts[0].startswith(f'#define {name}('))
    if definition.source.code[definition.first].kind == 'pp':
        return False
    if kind == 'function':
        return bool(definition.body) and '=' not in head and (
            head[-1] == ')') and _declared_name(head) == name
    if kind == 'prototype':
        return not definition.body and '=' not in texts and (
            texts[-1] == ';') and _declared_name(texts) == name
    if kind in ('struct', 'enum'):
        if not definition.body or kind not in head:
            return False
        after = definition.source.code[definition.body[1] + 1:definition.last]
        return name in head or name in [t.text for t in after]
    if kind == 'variable':
        return '=' in texts and name in texts[:texts.index('=')]
    return texts[0] == 'typedef' and name in texts


def find_definition(source, text):
    """The one definition that 'KIND NAME' stands for."""
    kind, _, name = text.partition(' ')
    if kind not in KINDS or not name:
        raise PortError(f'unknown scope {text!r}')
    found = [d for d in definitions(source) if _is(d, kind, name)]
    if len(found) != 1:
        raise Refused(f'{text}: found {len(found)} times, want 1')
    return found[0]


def token_range(source, scope):
    """The token range that a scope stands for; None is the whole file."""
    if not scope:
        return 0, len(source.code)
    definition = find_definition(source, scope)
    return definition.first, definition.last + 1
