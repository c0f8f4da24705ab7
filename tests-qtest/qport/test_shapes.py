# SPDX-License-Identifier: GPL-2.0-or-later
"""The real series on the miniature trees.

Set QPORT_GOLDEN=write to renew the expected diffs after an intended change;
review them as code.
"""

import os
import re
import unittest

from qport_lib import Refused, cli
from qport_lib.docs import TEXT_OPS
from qport_lib.engine import UNSUPPORTED, run_patch, run_series
from qport_lib.lex import Source
from qport_lib.match import find_all
from qport_lib.ops import C_OPS
from qport_lib.scope import find_definition, token_range
from qport_lib.series import load_series
from qport_lib.tree import Tree, probe_holds
from support import (EXPECTED, FITTING, HERE, TreeCase, all_series, run_qport,
                     snapshot)

GOLDEN = os.path.join(HERE, 'golden')


def longest_name(text, start, end, pattern):
    """The longest name of the pattern, where it stands in text[start:end]."""
    wanted = max(re.findall(r'(?<![$\w])[A-Za-z_]\w*', pattern), key=len)
    word = re.search(rf'\b{wanted}\b', text[start:end])
    return start + word.start(), start + word.end()


def anchors(text, edit):
    """The places in a text that an edit depends on: (start, end, can the
    place be doubled, what names it). Anchors that only exist after an earlier edit of the
    same series are not there yet and give nothing."""
    if edit['op'] in TEXT_OPS:
        for key in ('line', 'struct'):
            if key in edit:
                needle = (f"{{ 'struct': '{edit['struct']}'" if key == 'struct'
                          else edit[key])
                if text.count(needle) == 1:
                    at = text.index(needle)
                    yield at, at + len(needle), True, needle
        return
    source = Source(text)
    for key in ('def', 'after', 'before'):
        name = edit.get(key, '')
        if key == 'def' or edit['op'] in ('define', 'move-def'):
            try:
                thing = find_definition(source, name)
            except (Refused, ValueError):
                continue
            except Exception as err:            # no name of a definition
                if 'unknown scope' in str(err):
                    continue
                raise
            at = text.index(name.split()[1], thing.start)
            yield at, at + len(name.split()[1]), False, name.split()[1]
    pattern = edit.get('anchor', edit.get('was'))
    if pattern is None:
        return
    try:
        first, limit = token_range(source, edit.get('in'))
    except Refused:
        return
    found = find_all(source, pattern, first, limit)
    if len(found) == edit.get('count', 1):
        yield found[0].start, found[0].end, True, pattern


def sites(series, tree):
    """Every anchor of a series that lies in the untouched tree."""
    seen = set()
    for patch in series.patches:
        for hunk in patch.hunks:
            name = tree.pick(hunk['file'])
            if name is None or not all(probe_holds(tree, p)
                                       for p in hunk.get('when', [])):
                continue
            text = tree.read(name)
            for shape in hunk['shape']:
                for edit in shape['edit']:
                    for start, end, *rest in anchors(text, edit):
                        if (name, start, end) not in seen:
                            seen.add((name, start, end))
                            yield (f'{patch.slug}/{hunk["id"]}', name, start,
                                   end, *rest)


class VerdictsTest(TreeCase):
    def test_each_series_on_each_shape(self):
        for name, row in EXPECTED.items():
            for shape, want in row.items():
                with self.subTest(series=name, shape=shape):
                    tree = self.tree(shape, f'{name}-{shape}')
                    before = snapshot(tree)
                    self.assertEqual(run_qport('check', name, tree)[0], want)
                    self.assertEqual(snapshot(tree), before)

    def test_no_series_is_forgotten(self):
        self.assertEqual({s.name for s in all_series()}, set(EXPECTED))

    def test_schema_without_the_struct_is_no_obstacle(self):
        tree = self.tree('old')
        os.remove(os.path.join(tree, 'qapi', 'qom.json'))
        code, out, _ = run_qport('check', '--json', 'iothread-aio-max-batch',
                                 tree)
        self.assertEqual(code, 0)
        self.assertIn('"qapi-object": "left out"', out)


class GoldenTest(TreeCase):
    maxDiff = None

    def test_diffs_are_as_reviewed(self):
        for name, shape in FITTING:
            with self.subTest(series=name, shape=shape):
                tree = self.tree(shape, f'{name}-{shape}')
                _, got, _ = run_qport('diff', name, tree)
                path = os.path.join(GOLDEN, f'{name}.{shape}.diff')
                if os.environ.get('QPORT_GOLDEN') == 'write':
                    with open(path, 'w', encoding='utf-8') as file:
                        file.write(got)
                with open(path, encoding='utf-8') as file:
                    self.assertEqual(got, file.read())


class PatchedTest(TreeCase):
    def patched(self, name, shape):
        """A tree on disk with the series applied."""
        path = self.tree(shape, f'{name}-{shape}')
        tree = Tree(path)
        run_series(tree, load_series(cli.PATCHES, name))
        for file_name, text in tree.changes().items():
            with open(os.path.join(path, file_name), 'w',
                      encoding='utf-8') as file:
                file.write(text)
        return path

    def test_second_time_all_is_upstream(self):
        for name, shape in FITTING:
            with self.subTest(series=name, shape=shape):
                tree = self.patched(name, shape)
                self.assertEqual(run_qport('check', name, tree)[0], 1)

    def test_half_a_series_is_partly_upstream(self):
        for name, shape in FITTING:
            series = load_series(cli.PATCHES, name)
            if len(series.patches) == 1:
                continue
            with self.subTest(series=name, shape=shape):
                path = self.tree(shape, f'half-{name}-{shape}')
                tree = Tree(path)
                run_patch(tree, series.patches[0])
                for file_name, text in tree.changes().items():
                    with open(os.path.join(path, file_name), 'w',
                              encoding='utf-8') as file:
                        file.write(text)
                self.assertEqual(run_qport('check', name, path)[0], 2)
                self.assertEqual(run_qport('diff', name, path)[0], 0)

    def test_series_go_on_top_of_each_other_in_any_order(self):
        for shape in ('old', 'mid', 'new'):
            names = [n for n, s in FITTING if s == shape]
            for order in (names, names[::-1]):
                with self.subTest(shape=shape, order=order):
                    tree = Tree(self.tree(shape, f'{shape}-{order[0]}'))
                    for name in order:
                        verdict, _, reason = run_series(
                            tree, load_series(cli.PATCHES, name))
                        self.assertEqual(verdict, 0, f'{name}: {reason}')


class BrokenShapeTest(TreeCase):
    """Every anchor, renamed or doubled, must stop the whole series."""

    def broken(self, name, shape, change):
        series = load_series(cli.PATCHES, name)
        path = self.tree(shape, f'{name}-{shape}')
        tested = 0
        for where, file_name, *place in sites(series, Tree(path)):
            tree = Tree(path)
            text = change(tree.read(file_name), *place)
            if text is None:
                continue
            tree.original[file_name] = text
            tested += 1
            with self.subTest(series=name, shape=shape, hunk=where):
                verdict, _, _ = run_series(tree, series)
                self.assertEqual(verdict, UNSUPPORTED)
        return tested

    def each(self, change):
        for name, shape in FITTING:
            least = 1 if name in ('self-scheduled-bh', 'linux-aio-late-clear',
                                  'io-uring-max-batch',
                                  'file-posix-nonblock',
                                  'aio-poll-yield') else 12
            self.assertGreaterEqual(self.broken(name, shape, change), least)

    def test_renamed_anchor(self):
        def change(text, start, end, _double, pattern):
            low, _ = longest_name(text, start, end, pattern)
            return text[:low] + 'other_' + text[low:]
        self.each(change)

    def test_doubled_anchor(self):
        def change(text, start, end, double, _pattern):
            if not double:
                return None
            piece = text[start:end]
            if piece.startswith('{\n'):         # a body: double what it holds
                return text[:end - 1] + piece[1:] + text[end:]
            return text[:end] + ' ' + piece + text[end:]
        self.each(change)


if __name__ == '__main__':
    unittest.main()
