# SPDX-License-Identifier: GPL-2.0-or-later
"""Structural edits on invented C."""

import unittest

from qport_lib import PortError, Refused
from qport_lib.ops import C_OPS
from support import code


def run(text, op, holes=None, /, **edit):
    edit = {k.replace('_', '-') if k != 'in_' else 'in': v
            for k, v in edit.items()}
    return C_OPS[op](code(text), edit, {} if holes is None else holes)


class InsertTest(unittest.TestCase):
    TEXT = '''
        void f(void)
        {
            one();  /* trails */
            /* about two */
            two();
        }
        '''

    def test_after_goes_below_a_trailing_comment(self):
        self.assertIn('/* trails */\n    new();\n    /* about two */',
                      run(self.TEXT, 'insert-after', anchor='one();',
                          text='new();'))

    def test_before_goes_above_the_comment_of_the_anchor(self):
        self.assertIn('new();\n    /* about two */\n    two();',
                      run(self.TEXT, 'insert-before', anchor='two();',
                          text='new();'))

    def test_before_can_go_under_the_comment(self):
        self.assertIn('/* about two */\n    new();\n    two();',
                      run(self.TEXT, 'insert-before', anchor='two();',
                          text='new();', under_comment=True))

    def test_trailing_comment_of_the_line_above_is_not_taken(self):
        text = 'int a; /* a */\nint b;\n'
        self.assertEqual(run(text, 'insert-before', anchor='int b;',
                             text='int x;'),
                         'int a; /* a */\nint x;\nint b;\n')

    def test_blank_lines_on_the_wanted_side(self):
        self.assertIn('/* trails */\n\n    new();\n    /*',
                      run(self.TEXT, 'insert-after', anchor='one();',
                          text='new();', blank=True))
        self.assertIn('/* trails */\n\n    new();\n\n    /*',
                      run(self.TEXT, 'insert-after', anchor='one();',
                          text='new();', blank='both'))

    def test_directives_stay_in_the_first_column(self):
        self.assertIn('\n#ifdef A\n    new();\n#endif\n',
                      run(self.TEXT, 'insert-after', anchor='one();',
                          text='#ifdef A\nnew();\n#endif'))

    def test_missing_and_double_anchors_are_refused(self):
        with self.assertRaisesRegex(Refused, 'matches 0 times'):
            run(self.TEXT, 'insert-after', anchor='three();', text='x;')
        with self.assertRaisesRegex(Refused, 'matches 2 times'):
            run('{ a; a; }', 'insert-after', anchor='a;', text='x;')

    def test_anchor_outside_its_scope_is_refused(self):
        text = 'void f(void)\n{\n}\nvoid g(void)\n{\n    a;\n}\n'
        with self.assertRaisesRegex(Refused, 'in function f'):
            run(text, 'insert-after', anchor='a;', text='x;', in_='function f')


class ReplaceTest(unittest.TestCase):
    def test_holes_are_filled_in(self):
        self.assertEqual(run('g(f(a, b), c);\n', 'replace',
                             anchor='f($x)', text='h($x, 0)'),
                         'g(h(a, b, 0), c);\n')

    def test_later_lines_take_the_indentation(self):
        self.assertEqual(run('{\n    call(one);\n}\n', 'replace',
                             anchor='one', text='one,\n     two'),
                         '{\n    call(one,\n         two);\n}\n')

    def test_unknown_hole_is_an_error_of_the_series(self):
        with self.assertRaises(PortError):
            run('a;', 'replace', anchor='a;', text='$nothing;')

    def test_all_checks_the_count(self):
        text = '{ return; } { return; }'
        self.assertEqual(run(text, 'replace-all', anchor='return;',
                             text='return 1;', count=2),
                         '{ return 1; } { return 1; }')
        with self.assertRaises(Refused):
            run(text, 'replace-all', anchor='return;', text='x;', count=1)

    def test_captured_block_is_laid_out_anew(self):
        text = '''
            void f(void)
            {
                if (a) {
                    b();
                    if (c) {
                        d();
                    }
                }
            }
            '''
        self.assertEqual(
            run(text, 'body', in_='function f',
                was='{ if (a) { $$rest } }', text='$$rest'),
            code('''
                void f(void)
                {
                    b();
                    if (c) {
                        d();
                    }
                }
                '''))

    def test_body_refuses_what_it_does_not_expect(self):
        with self.assertRaises(Refused):
            run('void f(void)\n{\n    a;\n    { b; }\n}\n', 'body',
                in_='function f', was='{ b; }', text='c;')

    def test_find_only_captures(self):
        holes = {}
        self.assertEqual(run('a(b);', 'find', holes, anchor='a($x);'), 'a(b);')
        self.assertEqual(holes, {'x': 'b'})


class DeleteTest(unittest.TestCase):
    def test_one_blank_line_is_left_between_neighbours(self):
        self.assertEqual(run('a;\n\nb;\n\nc;\n', 'delete', anchor='b;'),
                         'a;\n\nc;\n')

    def test_no_blank_line_at_the_ends_of_a_block(self):
        self.assertEqual(run('{\n    a;\n\n    b;\n}\n', 'delete', anchor='a;'),
                         '{\n    b;\n}\n')
        self.assertEqual(run('{\n    a;\n\n    b;\n}\n', 'delete', anchor='b;'),
                         '{\n    a;\n}\n')

    def test_comment_goes_only_when_asked(self):
        text = 'a;\n/* b */\nb;\n'
        self.assertEqual(run(text, 'delete', anchor='b;'), 'a;\n/* b */\n')
        self.assertEqual(run(text, 'delete', anchor='b;', comment=True),
                         'a;\n')


class MoveTest(unittest.TestCase):
    TEXT = '''
        void f(void)
        {
            a();
        }

        void g(void)
        {
            /* b needs
             * two lines */
            b();

            c();
        }
        '''

    def test_statement_takes_its_comment_along(self):
        self.assertEqual(
            run(self.TEXT, 'move', anchor='b();', in_='function g',
                to='function f', after='a();', blank=True),
            code('''
                void f(void)
                {
                    a();

                    /* b needs
                     * two lines */
                    b();
                }

                void g(void)
                {
                    c();
                }
                '''))

    def test_definition_moves_before_another(self):
        text = run(self.TEXT, 'move-def', **{'def': 'function g',
                                             'before': 'function f'})
        self.assertLess(text.index('void g'), text.index('void f'))
        self.assertEqual(text.count('\n\n'), 2)


class CloneTest(unittest.TestCase):
    def test_names_change_in_code_strings_and_comments(self):
        self.assertEqual(
            run('int a_x; /* a_x, "a-x" */\n', 'clone', anchor='int a_x;',
                names={'a_x': 'b_y', 'a-x': 'b-y'}),
            'int a_x; /* a_x, "a-x" */\nint b_y; /* b_y, "b-y" */\n')

    def test_parts_of_names_stay(self):
        self.assertIn('get(ab, "ab-c");\nput(ab, "ab-c");',
                      run('get(ab, "ab-c");\n', 'clone', anchor='get($x);',
                          names={'get': 'put', 'a': 'z', 'ab': 'ab',
                                 'b-c': 'z'}))

    def test_definition_before_and_after(self):
        text = 'static int a(void)\n{\n    return 1;\n}\n'
        after = run(text, 'clone', **{'def': 'function a', 'blank': True},
                    names={'a': 'b'})
        before = run(text, 'clone', **{'def': 'function a', 'blank': True,
                                       'place': 'before'}, names={'a': 'b'})
        self.assertLess(after.index('int a('), after.index('int b('))
        self.assertLess(before.index('int b('), before.index('int a('))

    def test_replacement_that_does_not_occur_is_refused(self):
        with self.assertRaises(Refused):
            run('a;\n', 'clone', anchor='a;', names={}, replace={'z': 'y'})


class DefineTest(unittest.TestCase):
    TEXT = '#define A 1\n\n/* f is */\nvoid f(void)\n{\n}\n'

    def test_after_a_macro(self):
        self.assertIn('#define A 1\n\n#define B 2\n\n/* f is */',
                      run(self.TEXT, 'define', after='macro A',
                          text='#define B 2'))

    def test_before_a_function_and_its_comment(self):
        self.assertIn('int x;\n\n/* f is */\nvoid f',
                      run(self.TEXT, 'define', before='function f',
                          text='int x;'))

    def test_rename_must_find_every_name(self):
        self.assertEqual(run('a = b;', 'rename', names={'a': 'c'}), 'c = b;')
        with self.assertRaises(Refused):
            run('a = b;', 'rename', names={'a': 'c', 'x': 'y'})
