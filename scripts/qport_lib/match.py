# SPDX-License-Identifier: GPL-2.0-or-later
"""Patterns over code tokens.

A pattern is a piece of code with holes. `$name` stands for one or more tokens
within a statement: it never crosses a semicolon or a brace. `$$name` stands
for any number of whole statements: it may hold semicolons and blocks but never
leaves the block it began in. A hole that occurs twice must match equal tokens.
White space and comments never matter.
"""

from . import PortError
from .lex import CLOSE, OPEN, Span, lex_c


class Match(Span):
    """Where a pattern matched, and what its holes hold."""

    def __init__(self, source, first, last, holes):
        super().__init__(source, first, last)
        self.holes = {k: self._slice(*v) for k, v in holes.items()}

    def _slice(self, first, end):
        """The text of a hole, as if its first line were not indented."""
        if first == end:
            return ''
        code = self.source.code
        column = len(self.source.indent_of(code[first].start))
        lines = self.source.text[code[first].start:code[end - 1].end].split('\n')
        return '\n'.join([lines[0]] + [
            line[column:] if not line[:column].strip() else line.lstrip()
            for line in lines[1:]])

    @property
    def line(self):
        return self.source.line_of(self.start)


def compile_pattern(text):
    tokens = [t for t in lex_c(text) if t.kind != 'com']
    if not tokens:
        raise PortError('empty pattern')
    if tokens[0].kind == 'hole':
        raise PortError(f'pattern must not begin with a hole: {text.strip()!r}')
    return tokens


def _hole_ends(code, pos, limit, wide):
    """Each possible end (exclusive) of a hole that begins at pos, shortest
    first."""
    if wide:
        yield pos
    depth = 0
    while pos < limit:
        text = code[pos].text
        kind = code[pos].kind
        if not wide and (kind == 'pp' or text in (';', '{', '}')):
            return
        if kind == 'op':
            if text in OPEN:
                depth += 1
            elif text in CLOSE:
                if depth == 0:
                    return
                depth -= 1
        pos += 1
        if depth == 0 and (not wide or code[pos - 1].text in (';', '}')
                           or code[pos - 1].kind == 'pp'):
            yield pos


def _same(code, one, two):
    return ([t.text for t in code[one[0]:one[1]]] ==
            [t.text for t in code[two[0]:two[1]]])


def _match_at(code, pattern, pos, limit, holes, index=0):
    """Match pattern[index:] at pos; returns the end (exclusive) or None."""
    while index < len(pattern):
        want = pattern[index]
        if want.kind == 'hole':
            wide = want.text.startswith('$$')
            name = want.text.lstrip('$')
            for end in _hole_ends(code, pos, limit, wide):
                if name in holes and not _same(code, holes[name], (pos, end)):
                    continue
                trial = dict(holes)
                trial[name] = (pos, end)
                done = _match_at(code, pattern, end, limit, trial, index + 1)
                if done is not None:
                    holes.update(trial)
                    return done
            return None
        if pos >= limit or code[pos].text.strip() != want.text.strip():
            return None
        pos += 1
        index += 1
    return pos


def ambiguous(match, text):
    """Does a block hole hold a literal part of its own pattern? Then the part
    occurs twice, and which of the two was meant is a guess."""
    parts, part = [], []
    for tok in compile_pattern(text) + [None]:
        if tok is None or tok.kind == 'hole':
            parts.append(part)
            part = []
        else:
            part.append(tok.text.strip())
    wide = [lex_c(match.holes[t.text[2:]]) for t in compile_pattern(text)
            if t.text.startswith('$$')]
    for hole in wide:
        held = [t.text.strip() for t in hole if t.kind != 'com']
        for part in parts:
            size = len(part)
            if size > 3 and any(held[i:i + size] == part
                                for i in range(len(held) - size + 1)):
                return True
    return False


def find_all(source, text, first=0, limit=None):
    """Every match of the pattern within the token range."""
    pattern = compile_pattern(text)
    code = source.code
    limit = len(code) if limit is None else limit
    found = []
    for pos in range(first, limit):
        if code[pos].text.strip() != pattern[0].text.strip():
            continue
        holes = {}
        end = _match_at(code, pattern, pos, limit, holes)
        if end is not None:
            found.append(Match(source, pos, end - 1, holes))
    return found
