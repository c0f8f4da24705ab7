# SPDX-License-Identifier: GPL-2.0-or-later
"""Edits of QAPI schema files and of option text (.hx, .rst)."""

import re
import textwrap

from . import Refused
from .lex import CLOSE, OPEN, lex_qapi


def _only(found, what):
    if len(found) != 1:
        raise Refused(f'{what}: found {len(found)} times, want 1')
    return found[0]


def _struct_tokens(text, name):
    """Tokens of the schema expression { 'struct': 'NAME', ... }."""
    tokens = [t for t in lex_qapi(text) if t.kind != 'com']
    starts = [i for i in range(len(tokens) - 3)
              if [t.text for t in tokens[i:i + 4]] ==
              ['{', "'struct'", ':', f"'{name}'"]]
    first = _only(starts, f'schema struct {name}')
    depth = 0
    for index in range(first, len(tokens)):
        if tokens[index].text in OPEN:
            depth += 1
        elif tokens[index].text in CLOSE:
            depth -= 1
            if depth == 0:
                return tokens[first:index + 1]
    raise Refused(f'schema struct {name}: no end')


def _member_end(tokens, key):
    """Index of the last token of the value of a data member, and of its key."""
    keys = [i for i, t in enumerate(tokens)
            if t.text.strip("'").lstrip('*') == key
            and tokens[i + 1].text == ':']
    at = _only(keys, f'schema member {key!r}')
    depth, end = 0, at + 2
    for end in range(at + 2, len(tokens)):
        if tokens[end].text in OPEN:
            depth += 1
        elif tokens[end].text in CLOSE:
            depth -= 1
        if depth == 0:
            break
    return at, end


def _doc_block(text, struct_start, name):
    """Bounds of the ## ... ## block that documents the struct."""
    end = text.rfind('\n##\n', 0, struct_start)
    if end < 0 or text[end + 4:struct_start].strip():
        raise Refused(f'schema struct {name}: no documentation above it')
    start = text.rfind('##\n', 0, end + 1)
    return start + 3, end + 1


def _paragraphs(lines):
    """Maps a member name to the [first, end) lines of its paragraph."""
    found, name, first = {}, None, 0
    for index, line in enumerate(lines + ['#']):
        head = re.match(r'# @([\w-]+):(\s|$)', line)
        if name and (head or line.strip() == '#' and _next_closes(lines, index)):
            found[name] = (first, index)
            name = None
        if head:
            name, first = head.group(1), index
    return found


def _next_closes(lines, index):
    """Does the paragraph end at this empty line? An indented line goes on."""
    following = lines[index + 1] if index + 1 < len(lines) else '#'
    return not re.match(r'#\s{2,}\S', following)


def _layout(lines, spans, member):
    """Continuation indent and width, as the neighbours have them."""
    fixed, aligned = 0, 0
    for name, (first, end) in spans.items():
        for line in lines[first + 1:end]:
            if line.strip() == '#':
                continue
            indent = len(line) - len(line[1:].lstrip())
            if indent == len(f'# @{name}: '):
                aligned += 1
            else:
                fixed = indent
    if aligned and not fixed:
        return ' ' * (len(f'# @{member}: ') - 1), 79
    return ' ' * ((fixed or 6) - 1), 70


def qapi_member(text, edit, _holes):
    """Add a member to a schema struct and to its documentation."""
    name, member, after = edit['struct'], edit['member'], edit['after']
    tokens = _struct_tokens(text, name)
    if any(t.text.strip("'").lstrip('*') == member for t in tokens):
        raise Refused(f'schema struct {name} has a member {member!r} already')
    start, end = _doc_block(text, tokens[0].start, name)
    lines = text[start:end - 1].split('\n')
    spans = _paragraphs(lines)
    if after not in spans:
        raise Refused(f'schema struct {name}: {after!r} is not documented')
    indent, width = _layout(lines, spans, member)
    para = textwrap.wrap(' '.join(edit['doc'].split()), width - 2,
                         initial_indent=f'@{member}: ',
                         subsequent_indent=indent[1:],
                         break_on_hyphens=False,
                         fix_sentence_endings=True)
    at = spans[after][1]
    lines[at:at] = ['#'] + ['# ' + line for line in para]

    key, last = _member_end(tokens, after)
    column = tokens[key].start - (text.rfind('\n', 0, tokens[key].start) + 1)
    star = '*' if edit.get('optional') else ''
    entry = f",\n{' ' * column}'{star}{member}': '{edit['type']}'"
    cut = tokens[last].end
    data = text[end - 1:cut] + entry + text[cut:]
    return text[:start] + '\n'.join(lines) + data


def _line_with(text, needle):
    found = [m.start() for m in re.finditer(re.escape(needle), text)]
    at = _only(found, f'text {needle!r}')
    start = text.rfind('\n', 0, at) + 1
    end = text.find('\n', at)
    return start, len(text) if end < 0 else end


def text_insert(text, edit, _holes):
    """Put a text into the line that holds `line`, before its last `before`."""
    start, end = _line_with(text, edit['line'])
    at = text.rfind(edit['before'], start, end)
    if at < 0:
        raise Refused(f'no {edit["before"]!r} in the line with {edit["line"]!r}')
    return text[:at] + edit['text'] + text[at:]


def paragraph_after(text, edit, _holes):
    """Add a paragraph after the one that holds `line`, indented like it."""
    start, end = _line_with(text, edit['line'])
    indent = re.match(r'[ \t]*', text[start:]).group()
    stop = text.find('\n\n', end)
    stop = len(text) if stop < 0 else stop
    new = textwrap.fill(' '.join(edit['text'].split()), 72,
                        initial_indent=indent, subsequent_indent=indent,
                        break_on_hyphens=False, break_long_words=False)
    return text[:stop] + '\n\n' + new + text[stop:]


def text_replace(text, edit, _holes):
    """Replace one literal piece of text that occurs once."""
    found = [m.start() for m in re.finditer(re.escape(edit['line']), text)]
    at = _only(found, f'text {edit["line"]!r}')
    return text[:at] + edit['text'] + text[at + len(edit['line']):]


def text_insert_line(text, edit, _holes):
    """Put lines before the first line `stop` below the line with `line`."""
    _, end = _line_with(text, edit['line'])
    at = text.find('\n' + edit['stop'] + '\n', end - 1)
    if at < 0:
        raise Refused(f'no line {edit["stop"]!r} below {edit["line"]!r}')
    return text[:at] + '\n' + edit['text'].strip('\n') + text[at:]


TEXT_OPS = {
    'qapi-member': qapi_member, 'text-insert': text_insert,
    'text-insert-line': text_insert_line, 'paragraph-after': paragraph_after,
    'text-replace': text_replace,
}
