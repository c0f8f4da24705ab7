# SPDX-License-Identifier: GPL-2.0-or-later
"""Tokens of C, of QAPI schema files and of patterns."""

import bisect
import re

# A preprocessor line is one token together with its continuation lines, so
# that a pattern can never match half of a macro by accident.
_C_TOKEN = re.compile(r'''
    (?P<pp>(?m:^)[ \t]*\#(?:[^\n\\]|\\.|\\\n)*)
  | (?P<com>/\*.*?\*/|//[^\n]*)
  | (?P<str>"(?:[^"\\\n]|\\.)*")
  | (?P<chr>'(?:[^'\\\n]|\\.)*')
  | (?P<hole>\$\$?[A-Za-z_]\w*)
  | (?P<id>[A-Za-z_]\w*)
  | (?P<num>\.?\d(?:[eEpP][+-]|[\w.])*)
  | (?P<op>\.\.\.|->|\+\+|--|<<=|>>=|<<|>>|[<>=!+\-*/%&|^]=|&&|\|\||\#\#?|[^\s\w])
''', re.X | re.S)

_QAPI_TOKEN = re.compile(r'''
    (?P<com>\#[^\n]*)
  | (?P<str>'(?:[^'\\\n]|\\.)*')
  | (?P<id>[A-Za-z_]\w*)
  | (?P<op>[^\s\w])
''', re.X)

OPEN = {'(': ')', '[': ']', '{': '}'}
CLOSE = frozenset(')]}')


class Token:
    """One token: its kind, its text and where it lies in the source."""

    __slots__ = ('kind', 'text', 'start', 'end')

    def __init__(self, kind, text, start):
        self.kind = kind
        self.text = text
        self.start = start
        self.end = start + len(text)

    def __repr__(self):
        return f'<{self.kind} {self.text!r}>'


def lex_c(text):
    """All tokens of a C source, comments and preprocessor lines included."""
    return [Token(m.lastgroup, m.group(), m.start())
            for m in _C_TOKEN.finditer(text)]


def lex_qapi(text):
    return [Token(m.lastgroup, m.group(), m.start())
            for m in _QAPI_TOKEN.finditer(text)]


class Source:
    """A source text with its tokens and line table."""

    def __init__(self, text):
        self.text = text
        self.tokens = lex_c(text)
        self.code = [t for t in self.tokens if t.kind != 'com']
        self._lines = [0] + [m.end() for m in re.finditer('\n', text)]

    def line_of(self, pos):
        """Line number, from 1, of a position."""
        return bisect.bisect_right(self._lines, pos)

    def line_start(self, pos):
        return self._lines[self.line_of(pos) - 1]

    def line_end(self, pos):
        """Position of the newline that ends the line of pos."""
        end = self.text.find('\n', pos)
        return len(self.text) if end < 0 else end

    def indent_of(self, pos):
        """Leading white space of the line of pos."""
        start = self.line_start(pos)
        return re.match(r'[ \t]*', self.text[start:]).group()

    def comment_above(self, pos):
        """Start of the comment lines directly above the line of pos, or the
        start of that line when there are none."""
        start = self.line_start(pos)
        for tok in reversed(self.tokens):
            if tok.start >= start:
                continue
            if tok.kind != 'com' or self.line_end(tok.end) + 1 != start:
                break
            if self.text[self.line_start(tok.start):tok.start].strip():
                break           # a comment that trails other code
            start = self.line_start(tok.start)
        return start


class Span:
    """A piece of a source: its code tokens [first, last]."""

    def __init__(self, source, first, last):
        self.source = source
        self.first = first
        self.last = last

    @property
    def start(self):
        return self.source.code[self.first].start

    @property
    def end(self):
        return self.source.code[self.last].end


def words(text):
    """The tokens of any text, layout dropped, for comparing texts. Licence
    lines are alike by intention."""
    text = re.sub(r'(?m)^.*SPDX-License-Identifier.*$', '', text)
    return re.findall(r'\w+|[^\s\w]', text)
