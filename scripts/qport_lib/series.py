# SPDX-License-Identifier: GPL-2.0-or-later
"""Loading and checking the series files under patches/."""

import os
import re
import tomllib

from . import PortError
from .docs import TEXT_OPS
from .ops import C_OPS

SERIES_KEYS = {'title', 'order', 'range', 'requires', 'conflicts', 'forbid',
               'require', 'cover', 'summary'}
PATCH_KEYS = {'subject', 'body', 'trailers', 'upstream', 'forbid', 'require',
              'hunk', 'post'}
PROBE_KEYS = {'file', 'ident', 'text', 'pattern', 'in', 'absent', 'reason',
              'count'}
HUNK_KEYS = {'id', 'file', 'edit', 'shape', 'when'}

# What each operation needs and what it may have besides.
OP_FIELDS = {
    'insert-after': ({'anchor', 'text'}, {'in', 'blank'}),
    'insert-before': ({'anchor', 'text'}, {'in', 'blank', 'under-comment'}),
    'replace': ({'anchor', 'text'}, {'in', 'comment'}),
    'replace-all': ({'anchor', 'text', 'count'}, {'in'}),
    'delete': ({'anchor'}, {'in', 'comment'}),
    'move': ({'anchor'}, {'in', 'to', 'after', 'before', 'blank'}),
    'move-def': ({'def', 'before'}, set()),
    'rename': ({'names'}, {'in'}),
    'clone': ({'names'}, {'def', 'anchor', 'in', 'replace', 'place', 'blank',
                          'comment'}),
    'define': ({'text'}, {'after', 'before', 'close'}),
    'body': ({'in', 'was', 'text'}, set()),
    'find': ({'anchor'}, {'in'}),
    'qapi-member': ({'struct', 'member', 'after', 'type', 'doc'}, {'optional'}),
    'text-insert': ({'line', 'before', 'text'}, set()),
    'text-insert-line': ({'line', 'stop', 'text'}, set()),
    'paragraph-after': ({'line', 'text'}, set()),
    'text-replace': ({'line', 'text'}, set()),
}
assert set(OP_FIELDS) == set(C_OPS) | set(TEXT_OPS)


class Patch:
    """One patch of a series: it becomes one commit."""

    def __init__(self, slug, data):
        self.slug = slug
        self.subject = data['subject']
        self.body = data['body'].strip()
        self.trailers = data.get('trailers', [])
        self.upstream = data['upstream']
        self.forbid = data.get('forbid', [])
        self.require = data.get('require', [])
        self.hunks = data['hunk']
        self.post = data.get('post', [])


class Series:
    """A directory below patches/ with its patches in order."""

    def __init__(self, name, data, patches):
        self.name = name
        self.title = data['title']
        self.order = data['order']
        self.range = data['range']
        self.summary = data['summary']
        self.requires = data.get('requires', [])
        self.conflicts = data.get('conflicts', [])
        self.forbid = data.get('forbid', [])
        self.require = data.get('require', [])
        self.cover = data['cover'].strip()
        self.patches = patches


def _keys(where, data, allowed, needed):
    for key in data:
        if key not in allowed:
            raise PortError(f'{where}: unknown key {key!r}')
    for key in needed:
        if key not in data:
            raise PortError(f'{where}: {key!r} is missing')


def _probe(where, probe, reason=False):
    _keys(where, probe, PROBE_KEYS, {'file'} | ({'reason'} if reason else set()))
    if len([k for k in ('ident', 'text', 'pattern') if k in probe]) != 1:
        raise PortError(f'{where}: a probe has one of ident, text, pattern')


def _edit(where, edit):
    if edit.get('op') not in OP_FIELDS:
        raise PortError(f'{where}: unknown operation {edit.get("op")!r}')
    needed, allowed = OP_FIELDS[edit['op']]
    _keys(f'{where}: {edit["op"]}', edit, needed | allowed | {'op'}, needed)


def _hunk(where, hunk):
    """Check a hunk; a hunk with an 'op' of its own is its only edit."""
    if 'op' in hunk:
        edit = {k: v for k, v in hunk.items() if k not in ('id', 'file', 'when')}
        for key in edit:
            del hunk[key]
        hunk['edit'] = [edit]
    _keys(where, hunk, HUNK_KEYS, {'id', 'file'})
    for probe in hunk.get('when', []):
        _probe(where, probe)
    if ('edit' in hunk) == ('shape' in hunk):
        raise PortError(f'{where}: needs edits or shapes, not both')
    if 'edit' in hunk:
        hunk['shape'] = [{'name': 'only', 'edit': hunk.pop('edit')}]
    for shape in hunk['shape']:
        _keys(where, shape, {'name', 'edit', 'when'}, {'name', 'edit'})
        for probe in shape.get('when', []):
            _probe(f'{where}, shape {shape["name"]}', probe)
        for edit in shape['edit']:
            _edit(f'{where}, shape {shape["name"]}', edit)


def _load_toml(path):
    try:
        with open(path, 'rb') as file:
            return tomllib.load(file)
    except FileNotFoundError:
        raise PortError(f'{path}: no such file') from None
    except tomllib.TOMLDecodeError as err:
        raise PortError(f'{path}: {err}') from None


def load_patch(path):
    data = _load_toml(path)
    _keys(path, data, PATCH_KEYS, {'subject', 'body', 'upstream', 'hunk'})
    for kind in ('upstream', 'forbid', 'require', 'post'):
        for probe in data.get(kind, []):
            _probe(f'{path}: {kind}', probe, kind in ('forbid', 'require'))
    if not data['upstream']:
        raise PortError(f'{path}: no upstream probe')
    seen = set()
    for hunk in data['hunk']:
        name = hunk.get('id', '?')
        if name in seen:
            raise PortError(f'{path}: two hunks named {name!r}')
        seen.add(name)
        _hunk(f'{path}: hunk {name!r}', hunk)
    return Patch(os.path.basename(path)[:-len('.toml')], data)


def load_series(root, name):
    """Load patches/NAME."""
    folder = os.path.join(root, name)
    if not os.path.isfile(os.path.join(folder, 'series.toml')):
        known = ', '.join(s for s in series_names(root))
        raise PortError(f'no series {name!r}; there are: {known}')
    path = os.path.join(folder, 'series.toml')
    data = _load_toml(path)
    _keys(path, data, SERIES_KEYS, {'title', 'order', 'range', 'summary',
                                    'cover'})
    for kind in ('forbid', 'require'):
        for probe in data.get(kind, []):
            _probe(f'{path}: {kind}', probe, True)
    files = sorted(f for f in os.listdir(folder)
                   if re.fullmatch(r'\d\d-[a-z0-9-]+\.toml', f))
    if not files:
        raise PortError(f'{folder}: no patches')
    return Series(name, data,
                  [load_patch(os.path.join(folder, f)) for f in files])


def series_names(root):
    """The series there are, in their order."""
    if not os.path.isdir(root):
        raise PortError(f'{root}: no such directory')
    found = []
    for name in os.listdir(root):
        path = os.path.join(root, name, 'series.toml')
        if os.path.isfile(path):
            found.append((_load_toml(path).get('order', 99), name))
    return [name for _, name in sorted(found)]
