# SPDX-License-Identifier: GPL-2.0-or-later
"""Structural edits of C sources.

Each operation takes the text of a file, the fields of an edit and the holes
bound so far in its hunk, and returns the new text. It raises Refused when an
anchor does not match exactly once.
"""

import re
import textwrap

from . import PortError, Refused
from .lex import Source, lex_c
from .match import ambiguous, find_all
from .scope import definitions, find_definition, token_range


def one_match(source, pattern, scope=None):
    """The only match of pattern within scope."""
    first, limit = token_range(source, scope)
    found = find_all(source, pattern, first, limit)
    if len(found) != 1:
        where = f' in {scope}' if scope else ''
        shown = ' '.join(pattern.split())
        raise Refused(f'anchor {shown!r}{where}: '
                      f'matches {len(found)} times, want 1')
    if ambiguous(found[0], pattern):
        raise Refused(f'anchor {" ".join(pattern.split())!r}: ambiguous, part '
                      f'of it occurs twice')
    return found[0]


def bind(match, holes):
    """Remember what the holes of a match held."""
    holes.update(match.holes)


def fill(text, holes):
    """Put captured texts into `$name` and `$$name` of a replacement."""
    def put(found):
        name = found.group(2)
        if name not in holes:
            raise PortError(f'no capture named {name!r}')
        value = holes[name]
        lead = re.search(r'(?:^|\n)([ \t]*)$', text[:found.start()])
        if lead:
            value = value.replace('\n', '\n' + lead.group(1))
        return re.sub(r'[ \t]+(?=\n)', '', value)
    return re.sub(r'(\$\$?)([A-Za-z_]\w*)', put, text)


def _block(text, holes, indent):
    """The text of an edit, laid out at an indentation."""
    text = textwrap.dedent(text).strip('\n')
    return textwrap.indent(fill(text, holes), indent,
                           lambda line: line.strip() and not line.startswith('#'))


def insert_after(text, edit, holes):
    source = Source(text)
    match = one_match(source, edit['anchor'], edit.get('in'))
    bind(match, holes)
    at = source.line_end(match.end)
    trailing = [t for t in source.tokens
                if t.kind == 'com' and match.end <= t.start < at < t.end]
    if trailing:
        at = source.line_end(trailing[0].end)
    new = _block(edit['text'], holes, source.indent_of(match.start))
    return text[:at] + _gap(edit, 'before') + new + (
        '\n' if edit.get('blank') in ('after', 'both') else '') + text[at:]


def _gap(edit, side):
    """Line end, and a blank line on the side where `blank` wants one."""
    wanted = edit.get('blank') in (True, side, 'both')
    return '\n\n' if wanted else '\n'


def insert_before(text, edit, holes):
    source = Source(text)
    match = one_match(source, edit['anchor'], edit.get('in'))
    bind(match, holes)
    at = (source.line_start(match.start) if edit.get('under-comment')
          else source.comment_above(match.start))
    new = _block(edit['text'], holes, source.indent_of(match.start))
    return text[:at] + (
        '\n' if edit.get('blank') in ('before', 'both') else '') + (
        new + _gap(edit, 'after') + text[at:])


def replace(text, edit, holes):
    source = Source(text)
    match = one_match(source, edit['anchor'], edit.get('in'))
    bind(match, holes)
    indent = source.indent_of(match.start)
    start, end = match.start, match.end
    if edit.get('comment'):
        start = source.comment_above(start) + len(indent)
    new = _block(edit['text'], holes, indent)
    return text[:start] + new[len(indent):] + text[end:]


def replace_all(text, edit, holes):
    """Replace every match; `count` says how many there must be."""
    source = Source(text)
    first, limit = token_range(source, edit.get('in'))
    found = find_all(source, edit['anchor'], first, limit)
    if len(found) != edit['count']:
        raise Refused(f'anchor {edit["anchor"]!r}: matches {len(found)} times, '
                      f'want {edit["count"]}')
    for match in reversed(found):
        local = dict(holes)
        bind(match, local)
        text = text[:match.start] + fill(edit['text'], local) + text[match.end:]
    return text


def _cut(text, source, start, end):
    """Remove whole lines and close the gap they leave."""
    start, end = source.line_start(start), source.line_end(end) + 1
    before, after = text[:start], text[end:]
    if before.endswith('\n\n') and after.startswith('\n'):
        after = after[1:]
    elif re.search(r'\{[ \t]*\n$', before) and after.startswith('\n'):
        after = after[1:]
    elif before.endswith('\n\n') and re.match(r'[ \t]*(\}|$)', after):
        before = before[:-1]
    return before + after


def delete(text, edit, holes):
    source = Source(text)
    match = one_match(source, edit['anchor'], edit.get('in'))
    bind(match, holes)
    start = (source.comment_above(match.start) if edit.get('comment')
             else match.start)
    return _cut(text, source, start, match.end)


def move(text, edit, holes):
    """Move a statement with the comment above it."""
    source = Source(text)
    match = one_match(source, edit['anchor'], edit.get('in'))
    bind(match, holes)
    start = source.comment_above(match.start)
    piece = text[start:source.line_end(match.end)]
    rest = _cut(text, source, start, match.end)
    place = 'after' if 'after' in edit else 'before'
    target = {'anchor': edit[place], 'in': edit.get('to', edit.get('in')),
              'text': piece, 'blank': edit.get('blank', False)}
    return (insert_after if place == 'after' else insert_before)(
        rest, target, {})


def move_def(text, edit, _holes):
    """Move a definition with the comment above it before another one."""
    source = Source(text)
    thing = find_definition(source, edit['def'])
    start = source.comment_above(thing.start)
    piece = text[start:source.line_end(thing.end)]
    rest = _cut(text, source, start, thing.end)
    return define(rest, {'text': piece, 'before': edit['before']}, {})


def rename(text, edit, _holes):
    """Rename identifiers within a scope; each must occur."""
    source = Source(text)
    first, limit = token_range(source, edit.get('in'))
    low = source.code[first].start
    high = source.code[limit - 1].end
    piece = text[low:high]
    for old in edit['names']:
        if not re.search(rf'\b{re.escape(old)}\b', piece):
            raise Refused(f'nothing named {old!r} to rename')
    return text[:low] + renamed(piece, edit['names']) + text[high:]


def renamed(piece, names):
    """Apply renames to identifiers, and inside strings and comments."""
    out, at = [], 0
    for tok in lex_c(piece):
        out.append(piece[at:tok.start])
        new = tok.text
        if tok.kind in ('str', 'com', 'pp'):
            for old, now in names.items():
                new = re.sub(rf'(?<![\w-]){re.escape(old)}(?![\w-])', now, new)
        else:
            new = names.get(new, new)
        out.append(new)
        at = tok.end
    return ''.join(out) + piece[at:]


def clone(text, edit, holes):
    """Copy a definition or statement with renames, by default below itself."""
    source = Source(text)
    if 'def' in edit:
        thing = find_definition(source, edit['def'])
    else:
        thing = one_match(source, edit['anchor'], edit.get('in'))
        bind(thing, holes)
    start = (source.comment_above(thing.start) if edit.get('comment')
             else source.line_start(thing.start))
    copy = renamed(text[start:source.line_end(thing.end)], edit['names'])
    for old, new in edit.get('replace', {}).items():
        if old not in copy:
            raise Refused(f'clone: nothing like {old!r} in the original')
        copy = copy.replace(old, fill(new, holes))
    gap = '\n\n' if edit.get('blank') else '\n'
    if edit.get('place') == 'before':
        at = source.comment_above(thing.start)
        return text[:at] + copy + gap + text[at:]
    at = source.line_end(thing.end)
    return text[:at] + gap + copy + text[at:]


def define(text, edit, holes):
    """Put a new definition before or after an existing one."""
    source = Source(text)
    place = 'after' if 'after' in edit else 'before'
    name = edit[place]
    if name == 'last':
        thing = definitions(source)[-1]
    else:
        thing = find_definition(source, name)
    new = _block(edit['text'], holes, '')
    gap = '\n' if edit.get('close') else '\n\n'
    if place == 'after':
        at = source.line_end(thing.end)
        return text[:at] + gap + new + text[at:]
    at = source.comment_above(thing.start)
    return text[:at] + new + gap + text[at:]


def body(text, edit, holes):
    """Write a function body anew; `was` must match what it held."""
    source = Source(text)
    thing = find_definition(source, edit['in'])
    if thing.body is None:
        raise Refused(f'{edit["in"]}: no body')
    held = one_match(source, edit['was'], edit['in'])
    if (held.first, held.last) != (thing.body[0], thing.body[1]):
        raise Refused(f'{edit["in"]}: its body is not only what was expected')
    bind(held, holes)
    start = source.code[thing.body[0]].start
    new = _block(edit['text'], holes, '    ')
    return text[:start] + '{\n' + new + '\n}' + text[thing.end:]


def find(text, edit, holes):
    """Only look: the anchor must match once and its holes are kept."""
    source = Source(text)
    bind(one_match(source, edit['anchor'], edit.get('in')), holes)
    return text


C_OPS = {
    'insert-after': insert_after, 'insert-before': insert_before,
    'replace': replace, 'replace-all': replace_all, 'delete': delete,
    'move': move, 'move-def': move_def, 'rename': rename, 'clone': clone, 'define': define,
    'body': body, 'find': find,
}
