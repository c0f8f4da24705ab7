# SPDX-License-Identifier: GPL-2.0-or-later
"""House rules for the series files, and the comparison with upstream."""

import os
import re

from .lex import words

RUN = 20                # equal tokens in a row that count as copied
SUFFIXES = ('.c', '.h', '.inc', '.json', '.hx', '.rst')


def _strings(value):
    """Every string in a TOML value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)


def style(series):
    """Complaints about subjects, bodies and the width of lines."""
    for patch in series.patches:
        where = f'{series.name}/{patch.slug}'
        if not re.fullmatch(r'[a-z0-9/_-]+: [^ ].*[^.]', patch.subject):
            yield f'{where}: subject is not "area: what it does"'
        if len(patch.subject) > 72:
            yield f'{where}: subject is longer than 72 characters'
        if not patch.body:
            yield f'{where}: no body'
        for line in patch.body.splitlines():
            if len(line) > 74 and not line.startswith(' '):
                yield f'{where}: body line is longer than 74: {line!r}'
        if re.search(r'^Signed-off-by:', patch.body, re.M):
            yield f'{where}: sign-offs come from the user of the tool'
        for hunk in patch.hunks:
            for shape in hunk['shape']:
                for edit in shape['edit']:
                    yield from _wide(f'{where}: {hunk["id"]}', edit)
    for line in series.cover.splitlines():
        if len(line) > 74 and not line.startswith(' '):
            yield f'{series.name}: cover line is longer than 74: {line!r}'


def _wide(where, edit):
    if edit['op'] in ('paragraph-after', 'text-insert', 'text-replace'):
        return
    for line in str(edit.get('text', '')).splitlines():
        if len(line) > 80:
            yield f'{where}: line is longer than 80: {line!r}'
        if line != line.rstrip():
            yield f'{where}: white space at the end of a line'
        if '\t' in line:
            yield f'{where}: tab'


def own_texts(series):
    """What the series would bring into a tree, and what it quotes of it."""
    for patch in series.patches:
        for hunk in patch.hunks:
            for shape in hunk['shape']:
                for edit in shape['edit']:
                    for text in _strings(edit):
                        yield f'{series.name}/{patch.slug}: {hunk["id"]}', text
        yield f'{series.name}/{patch.slug}: body', patch.body
        for kind in ('upstream', 'forbid', 'require', 'post'):
            for text in _strings(getattr(patch, kind)):
                yield f'{series.name}/{patch.slug}: {kind}', text
    yield f'{series.name}: cover', series.cover


def _runs(tokens):
    return {tuple(tokens[i:i + RUN]) for i in range(len(tokens) - RUN + 1)}


def tree_files(tree):
    for folder, folders, names in os.walk(tree):
        folders[:] = sorted(f for f in folders
                            if not f.startswith('.') and f != 'roms')
        for name in sorted(names):
            if name.endswith(SUFFIXES):
                yield os.path.join(folder, name)


def copied(texts, tree):
    """Runs of RUN equal tokens between texts and a tree.

    Yields (where, first file that has it, how many files have it, run), one
    for each place in the texts.
    """
    wanted, vocabulary = {}, set()
    for where, text in texts:
        tokens = words(text)
        for run in _runs(tokens):
            wanted.setdefault(run, where)
        vocabulary.update(tokens)
    found = {}
    for path in tree_files(tree):
        with open(path, encoding='utf-8', errors='replace') as file:
            tokens = words(file.read())
        first = 0
        for index in range(len(tokens) + 1):
            if index < len(tokens) and tokens[index] in vocabulary:
                continue
            for at in range(first, index - RUN + 1):
                run = tuple(tokens[at:at + RUN])
                where = wanted.get(run)
                if where:
                    found.setdefault(where, (run, []))[1].append(path)
            first = index + 1
    for where, (run, paths) in found.items():
        yield (where, os.path.relpath(paths[0], tree), len(set(paths)),
               ' '.join(run))
