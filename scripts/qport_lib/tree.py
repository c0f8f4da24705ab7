# SPDX-License-Identifier: GPL-2.0-or-later
"""A QEMU checkout as the series see it: read-only files under an overlay."""

import difflib
import os
import re

from . import PortError, Refused
from .lex import Source
from .match import find_all
from .scope import token_range


def next_release(version):
    """The release that a patch written on VERSION will appear in.

    QEMU makes three releases a year, x.0 to x.2; 6.0.50 and 6.0.90 are on
    the way from 6.0 to 6.1.
    """
    found = re.fullmatch(r'(\d+)\.(\d+)\.(\d+)', version)
    if not found:
        raise PortError(f'VERSION holds {version!r}, want three numbers')
    major, minor = int(found.group(1)), int(found.group(2))
    return f'{major}.{minor + 1}' if minor < 2 else f'{major + 1}.0'


class Tree:
    """Files of a checkout, with edits kept in memory only."""

    def __init__(self, path):
        self.path = path
        if not os.path.isdir(path):
            raise PortError(f'{path}: no such directory')
        needed = ('VERSION', 'block.c', 'qapi/misc.json')
        for name in needed:
            if not os.path.isfile(os.path.join(path, name)):
                raise PortError(f'{path}: not the top of a QEMU source tree '
                                f'(no {name})')
        with open(os.path.join(path, 'VERSION'), encoding='utf-8') as file:
            self.version = file.read().strip()
        self.since = next_release(self.version)
        self.overlay = {}
        self.original = {}

    def exists(self, name):
        return name in self.overlay or os.path.isfile(
            os.path.join(self.path, name))

    def pick(self, names):
        """The first file of a list of alternatives that exists, or None."""
        names = [names] if isinstance(names, str) else names
        return next((n for n in names if self.exists(n)), None)

    def read(self, name):
        if name in self.overlay:
            return self.overlay[name]
        if name not in self.original:
            try:
                with open(os.path.join(self.path, name), encoding='utf-8',
                          newline='') as file:
                    self.original[name] = file.read()
            except (OSError, UnicodeDecodeError) as err:
                raise PortError(f'{name}: {err}') from None
        return self.original[name]

    def write(self, name, text):
        self.read(name)
        self.overlay[name] = text

    def snapshot(self):
        return dict(self.overlay)

    def restore(self, saved):
        self.overlay = saved

    def changes(self, before=None):
        """Names and texts that differ from a snapshot (or from the files)."""
        before = {} if before is None else before
        return {name: text for name, text in sorted(self.overlay.items())
                if text != before.get(name, self.original[name])}

    def diff(self):
        out = []
        for name, text in self.changes().items():
            out += difflib.unified_diff(
                self.original[name].splitlines(True), text.splitlines(True),
                f'a/{name}', f'b/{name}')
        return ''.join(out)


def probe_holds(tree, probe):
    """Does a probe hold? It looks into each file of its list that exists; a
    missing file or scope counts as not found."""
    names = probe['file']
    names = [names] if isinstance(names, str) else names
    found = sum(_count(tree.read(name), probe)
                for name in names if tree.exists(name))
    if 'count' in probe:
        return found == probe['count']
    return (found == 0) if probe.get('absent') else found > 0


def _count(text, probe):
    if 'text' in probe:
        return text.count(probe['text'])
    if 'ident' in probe and 'in' not in probe:
        word = re.escape(probe['ident'])
        return len(re.findall(rf'(?<![\w-]){word}(?![\w-])', text))
    return _count_in_scope(Source(text), probe)


def _count_in_scope(source, probe):
    try:
        first, limit = token_range(source, probe.get('in'))
    except Refused:
        return 0
    if 'ident' in probe:
        return sum(1 for t in source.code[first:limit]
                   if t.text == probe['ident'])
    return len(find_all(source, probe['pattern'], first, limit))
