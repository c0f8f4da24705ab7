# SPDX-License-Identifier: GPL-2.0-or-later
"""Verdicts on invented series and an invented tree."""

import json
import os

from qport_lib import PortError
from qport_lib.engine import run_series
from qport_lib.series import load_series
from qport_lib.tree import Tree, next_release, probe_holds
from support import TreeCase, run_qport

SERIES = '''
title = "area: do it"
order = 1
range = "all"
summary = "it"
cover = "Why."
'''
PATCH = '''
subject = "area: add %(name)s"
body = "Because."

[[upstream]]
file = "a.c"
ident = "%(name)s"

[[hunk]]
id = "only"
file = "a.c"
op = "insert-after"
anchor = "%(anchor)s;"
text = "%(name)s;"
'''


class InventedCase(TreeCase):
    """A tree with a.c and a series 's' of two patches for it."""

    def setUp(self):
        super().setUp()
        for name, text in {'tree/VERSION': '6.0.50\n', 'tree/block.c': '',
                           'tree/qapi/misc.json': '',
                           'tree/a.c': 'int first;\nbase;\n',
                           'p/s/series.toml': SERIES,
                           'p/s/01-x.toml': PATCH % {'name': 'xx',
                                                     'anchor': 'base'},
                           'p/s/02-y.toml': PATCH % {'name': 'yy',
                                                     'anchor': 'xx'}}.items():
            self.write(name, text)

    def write(self, name, text):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), 'w', encoding='utf-8') as file:
            file.write(text)

    def qport(self, *args):
        return run_qport('--patches', self.path('p'), *args)

    def check(self):
        return self.qport('check', 's', self.path('tree'))

    def edit(self, name, old, new):
        with open(self.path(name), encoding='utf-8') as file:
            text = file.read()
        self.assertIn(old, text)
        self.write(name, text.replace(old, new))


class VerdictTest(InventedCase):
    def test_patches_build_on_each_other(self):
        self.assertEqual(self.check()[0], 0)
        _, diff, _ = self.qport('diff', 's', self.path('tree'))
        self.assertIn('+xx;\n+yy;\n', diff)

    def test_all_upstream(self):
        self.write('tree/a.c', 'base;\nxx;\nyy;\n')
        code, out, _ = self.check()
        self.assertEqual(code, 1)
        self.assertIn('already upstream', out)

    def test_partly_upstream_names_what_is_there(self):
        self.write('tree/a.c', 'base;\nxx;\n')
        code, out, _ = self.check()
        self.assertEqual(code, 2)
        self.assertIn('01-x', out)
        self.assertIn('+yy;', self.qport('diff', 's', self.path('tree'))[1])

    def test_unknown_shape_gives_its_reason(self):
        self.write('tree/a.c', 'other;\n')
        code, out, _ = self.check()
        self.assertEqual(code, 3)
        self.assertIn("01-x: hunk only: a.c: anchor 'base;': matches 0 times",
                      out)

    def test_later_refusal_drops_the_series(self):
        self.edit('p/s/02-y.toml', 'xx;', 'zz;')
        self.assertEqual(self.check()[0], 3)
        self.assertEqual(self.qport('diff', 's', self.path('tree'))[1], '')

    def test_forbid_and_require_give_their_reasons(self):
        self.edit('p/s/series.toml', 'cover', '''
forbid = [{ file = "a.c", ident = "base", reason = "no base wanted" }]
cover''')
        self.assertIn('no base wanted', self.check()[1])
        self.edit('p/s/series.toml', 'forbid', 'require')
        self.edit('p/s/series.toml', 'ident = "base"', 'ident = "nothing"')
        code, out, _ = self.check()
        self.assertEqual(code, 3)
        self.assertIn('no base wanted', out)

    def test_upstream_wins_over_forbid(self):
        self.edit('p/s/series.toml', 'cover', '''
forbid = [{ file = "a.c", ident = "base", reason = "no base wanted" }]
cover''')
        self.write('tree/a.c', 'base;\nxx;\nyy;\n')
        self.assertEqual(self.check()[0], 1)

    def test_json_says_the_same(self):
        code, out, _ = self.qport('check', '--json', 's', self.path('tree'))
        answer = json.loads(out)
        self.assertEqual((code, answer['exit'], answer['since']), (0, 0, '6.1'))
        self.assertEqual([p['state'] for p in answer['patches']],
                         ['applies', 'applies'])


class HunkTest(InventedCase):
    SHAPES = '''
[[hunk]]
id = "two"
file = ["none.c", "a.c"]

[[hunk.shape]]
name = "new"
edit = [{ op = "insert-after", anchor = "newer;", text = "n;" }]

[[hunk.shape]]
name = "old"
when = [{ file = "a.c", ident = "first" }]
edit = [{ op = "insert-after", anchor = "base;", text = "o;" },
        { op = "insert-after", anchor = "o;", text = "p;" }]
'''

    def shapes(self):
        self.edit('p/s/01-x.toml', '[[hunk]]', self.SHAPES + '\n[[hunk]]')

    def test_shape_that_fits_is_used(self):
        self.shapes()
        self.assertIn('+o;\n', self.qport('diff', 's', self.path('tree'))[1])
        self.edit('tree/a.c', 'base', 'newer;\nbase')
        self.assertIn('+n;\n', self.qport('diff', 's', self.path('tree'))[1])

    def test_every_shape_tells_why_it_does_not_fit(self):
        self.shapes()
        self.edit('tree/a.c', 'first', 'second')
        out = self.check()[1]
        self.assertIn('[new] anchor', out)
        self.assertIn('[old] its condition does not hold', out)

    def test_half_done_shape_leaves_nothing(self):
        self.shapes()
        self.edit('p/s/01-x.toml', 'anchor = "o;"', 'anchor = "q;"')
        tree = Tree(self.path('tree'))
        run_series(tree, load_series(self.path('p'), 's'))
        self.assertEqual(tree.changes(), {})

    def test_missing_file_is_a_refusal(self):
        self.edit('p/s/01-x.toml', 'file = "a.c"\nop', 'file = "z.c"\nop')
        self.assertIn('no file z.c', self.check()[1])

    def test_hunk_is_left_out_when_its_condition_fails(self):
        self.edit('p/s/01-x.toml', 'op =', '''
when = [{ file = "a.c", ident = "elsewhere" }]
op =''')
        self.assertIn('not recognised as patched', self.check()[1])

    def test_postcondition_is_checked(self):
        self.edit('p/s/01-x.toml', '[[hunk]]', '''
[[post]]
file = "a.c"
ident = "xx"
count = 2

[[hunk]]''')
        self.assertIn('postcondition', self.check()[1])

    def test_explain_shows_place_and_change(self):
        code, out, _ = self.qport('explain', 's/02/only', self.path('tree'))
        self.assertEqual(code, 0)
        self.assertIn('shape only: fits', out)
        self.assertIn('+yy;', out)
        self.edit('tree/a.c', 'base', 'bass')
        self.assertIn('refused', self.qport('explain', 's/01-x/only',
                                            self.path('tree'))[1])

    def test_explain_of_an_unknown_hunk_names_the_known(self):
        code, _, err = self.qport('explain', 's/01/none', self.path('tree'))
        self.assertEqual(code, 4)
        self.assertIn('there are: only', err)


class OrderTest(InventedCase):
    """A series 't' that minds whether 's' is there."""

    def apply(self, key):
        self.write('p/t/series.toml', SERIES + f'{key} = ["s"]\n')
        self.write('p/t/01-t.toml', PATCH % {'name': 'tt', 'anchor': 'base'})
        tree = self.path('tree')
        self.git(tree, 'init', '-q', '-b', 'main')
        self.git(tree, 'config', 'user.name', 'A Developer')
        self.git(tree, 'config', 'user.email', 'dev@example.org')
        self.git(tree, 'add', '-A')
        self.git(tree, 'commit', '-q', '-m', 'Start')
        code, _, err = self.qport('apply', 't', tree, '--branch', 'b')
        return code, err

    def test_required_series_must_be_there(self):
        code, err = self.apply('requires')
        self.assertEqual(code, 4)
        self.assertIn('t needs s first', err)

    def test_required_series_is_there(self):
        self.write('tree/a.c', 'base;\nxx;\nyy;\n')
        self.assertEqual(self.apply('requires'), (0, ''))

    def test_conflicting_series_must_not_be_there(self):
        self.write('tree/a.c', 'base;\nxx;\n')
        code, err = self.apply('conflicts')
        self.assertEqual(code, 4)
        self.assertIn('cannot be combined with s', err)

    def test_conflicting_series_is_not_there(self):
        self.assertEqual(self.apply('conflicts'), (0, ''))


class ProbeTest(InventedCase):
    def holds(self, **probe):
        return probe_holds(Tree(self.path('tree')), {'file': 'a.c', **probe})

    def test_identifiers_are_whole_words(self):
        self.write('tree/a.c', 'aio_max_batch; "aio-max-batch"')
        self.assertTrue(self.holds(ident='aio_max_batch'))
        self.assertFalse(self.holds(ident='aio_max'))
        self.assertFalse(self.holds(ident='max'))

    def test_scope_that_is_missing_counts_as_not_found(self):
        self.assertFalse(self.holds(ident='x', **{'in': 'function none'}))
        self.assertTrue(self.holds(ident='x', absent=True,
                                   **{'in': 'function none'}))

    def test_all_files_of_a_list_are_looked_at(self):
        self.write('tree/b.c', 'only_b;')
        self.assertTrue(self.holds(file=['none.c', 'a.c', 'b.c'],
                                   ident='only_b'))

    def test_pattern_and_text(self):
        self.assertTrue(self.holds(pattern='int $x;'))
        self.assertTrue(self.holds(text='int first'))
        self.assertTrue(self.holds(text='int', count=1))


class SinceTest(InventedCase):
    def test_three_releases_a_year(self):
        self.assertEqual([next_release(v) for v in
                          ('5.2.0', '6.0.0', '6.0.50', '6.0.93', '11.0.92')],
                         ['6.0', '6.1', '6.1', '6.1', '11.1'])

    def test_odd_version_is_an_error(self):
        with self.assertRaises(PortError):
            next_release('v6')

    def test_mark_is_filled_in(self):
        self.edit('p/s/01-x.toml', 'text = "xx;"',
                  'text = "xx; /* since @SINCE@ */"')
        self.assertIn('since 6.1', self.qport('diff', 's',
                                              self.path('tree'))[1])


class FilesTest(InventedCase):
    def wrong(self, name, old, new, said):
        self.edit(name, old, new)
        code, _, err = self.check()
        self.assertEqual(code, 4)
        self.assertIn(said, err)

    def test_unknown_key_is_named(self):
        self.wrong('p/s/01-x.toml', 'anchor', 'ankor', "unknown key 'ankor'")

    def test_unknown_operation_is_named(self):
        self.wrong('p/s/01-x.toml', 'insert-after', 'insert-aftr',
                   "'insert-aftr'")

    def test_missing_key_is_named(self):
        self.wrong('p/s/series.toml', 'summary = "it"', '', "'summary' is")

    def test_toml_error_names_the_file(self):
        self.wrong('p/s/01-x.toml', 'body =', 'body', '01-x.toml')

    def test_two_hunks_of_one_name(self):
        self.wrong('p/s/01-x.toml', 'op =', '''
op = "delete"
anchor = "a;"

[[hunk]]
id = "only"
file = "a.c"
op =''', 'two hunks')

    def test_unknown_series_names_the_known(self):
        code, _, err = self.qport('check', 'none', self.path('tree'))
        self.assertEqual(code, 4)
        self.assertIn('there are: s', err)

    def test_wrong_tree_is_said(self):
        for path, said in (('nowhere', 'no such directory'),
                           ('p', 'not the top of a QEMU source tree')):
            code, _, err = self.qport('check', 's', self.path(path))
            self.assertEqual((code, err.count('\n')), (4, 1))
            self.assertIn(said, err)

    def test_wrong_command_line_is_no_verdict(self):
        self.assertEqual(self.qport('check')[0], 4)


class LintTest(InventedCase):
    def test_good_series_is_silent(self):
        self.assertEqual(self.qport('lint'), (0, '', ''))

    def test_style_is_complained_about(self):
        for old, new, said in (
                ('"area: add xx"', '"Add xx."', 'subject'),
                ('"Because."', '"' + 'word ' * 20 + '"', 'longer than 74'),
                ('"Because."', '"Signed-off-by: A <a@b.c>"', 'sign-offs'),
                ('text = "xx;"', 'text = "xx; "', 'white space')):
            with self.subTest(said):
                self.setUp()
                self.edit('p/s/01-x.toml', old, new)
                code, out, _ = self.qport('lint')
                self.assertEqual(code, 4)
                self.assertIn(said, out)

    def test_twenty_equal_tokens_are_found_nineteen_are_not(self):
        run = ' '.join(f'w{n}' for n in range(20))
        self.write('tree/b.c', f'before\n{run.replace(" ", chr(10))} after')
        self.edit('p/s/01-x.toml', 'text = "xx;"', f'text = "xx; {run}"')
        code, out, _ = self.qport('lint', '--against', self.path('tree'))
        self.assertEqual(code, 4)
        self.assertIn('b.c', out)
        self.write('tree/b.c', run.replace('w19', 'other'))
        self.assertEqual(self.qport('lint', '--against', self.path('tree'))[0],
                         0)

    def test_further_files_are_compared_too(self):
        run = ' '.join(f'w{n}' for n in range(20))
        self.write('tree/b.c', run)
        self.write('mine.c', run)
        self.assertEqual(self.qport('lint', '--against', self.path('tree'),
                                    self.path('mine.c'))[0], 4)


class MatrixTest(InventedCase):
    def test_table_replaces_the_old_one_in_a_file(self):
        self.write('r.md', 'a\n<!-- qport matrix: begin -->\nold\n'
                           '<!-- qport matrix: end -->\nz\n')
        self.write('bad/VERSION', '1.0.0\n')
        for name in ('block.c', 'qapi/misc.json', 'a.c'):
            self.write('bad/' + name, '')
        code, _, err = self.qport('matrix', 'good=' + self.path('tree'),
                                  self.path('bad'), '--update',
                                  self.path('r.md'))
        self.assertEqual((code, err), (0, ''))
        with open(self.path('r.md'), encoding='utf-8') as file:
            text = file.read()
        self.assertIn('| good (`6.0.50`) | applies |', text)
        self.assertIn('| 1.0.0 | refused [1] |', text)
        self.assertIn('1. s: 01-x: hunk only', text)
        self.assertNotIn('old', text)
        self.assertTrue(text.startswith('a\n') and text.endswith('z\n'))

    def test_file_without_marks_is_refused(self):
        self.write('r.md', 'no marks')
        self.assertEqual(self.qport('matrix', self.path('tree'), '--update',
                                    self.path('r.md'))[0], 4)
