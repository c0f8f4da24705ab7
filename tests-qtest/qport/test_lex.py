# SPDX-License-Identifier: GPL-2.0-or-later
"""Tokens, patterns with holes, and the bounds of definitions."""

import unittest

from qport_lib import PortError, Refused
from qport_lib.lex import Source, words
from qport_lib.match import find_all
from qport_lib.scope import find_definition, token_range
from support import code


def holes(text, pattern):
    return [m.holes for m in find_all(Source(text), pattern)]


class TokensTest(unittest.TestCase):
    def test_comment_marks_in_strings_are_text(self):
        source = Source('a = "/* no */"; b = \'"\'; // c "\n')
        self.assertEqual([t.text for t in source.code],
                         ['a', '=', '"/* no */"', ';', 'b', '=', "'\"'", ';'])

    def test_preprocessor_line_with_continuation_is_one_token(self):
        source = Source('#define A(x) \\\n    x;\nint b;\n')
        self.assertEqual([t.kind for t in source.code],
                         ['pp', 'id', 'id', 'op'])

    def test_hash_inside_a_line_is_no_directive(self):
        self.assertEqual([t.kind for t in Source('a # b\n').code],
                         ['id', 'op', 'id'])

    def test_operators_are_not_split(self):
        self.assertEqual([t.text for t in Source('a->b <<= ++c').code],
                         ['a', '->', 'b', '<<=', '++', 'c'])

    def test_lines_count_from_one(self):
        source = Source('a\nb\n\nc')
        self.assertEqual([source.line_of(t.start) for t in source.code],
                         [1, 2, 4])

    def test_licence_lines_are_not_compared(self):
        self.assertEqual(words('/* SPDX-License-Identifier: X */\na;'),
                         ['a', ';'])


class HolesTest(unittest.TestCase):
    def test_space_and_comments_do_not_matter(self):
        self.assertEqual(len(holes('f ( a,/* why */ b )\n;', 'f(a, b);')), 1)

    def test_statement_hole_takes_balanced_tokens(self):
        self.assertEqual(holes('f(g(1, 2), h);', 'f($x);'),
                         [{'x': 'g(1, 2), h'}])

    def test_statement_hole_is_never_empty(self):
        self.assertEqual(holes('f();', 'f($x);'), [])

    def test_statement_hole_stops_at_semicolon_and_brace(self):
        self.assertEqual(holes('f(a); g(b);', 'f($x; g(b);'), [])
        self.assertEqual(holes('f { a }', 'f $x a }'), [])

    def test_block_hole_spans_statements(self):
        self.assertEqual(holes('if (a) { b(); { c; } } d;',
                               'if (a) { $$body }'),
                         [{'body': 'b(); { c; }'}])

    def test_block_hole_may_be_empty(self):
        self.assertEqual(holes('{ a; }', '{ $$x a; }'), [{'x': ''}])

    def test_block_hole_does_not_leave_its_block(self):
        self.assertEqual(holes('{ a; } b;', '{ $$x b;'), [])

    def test_block_hole_holds_whole_statements_only(self):
        self.assertEqual(holes('{ x = a; }', '{ $$x a; }'), [])

    def test_repeated_hole_must_be_equal(self):
        self.assertEqual(len(holes('f(a, a); f(a, b);', 'f($x, $x);')), 1)

    def test_pattern_must_not_begin_with_a_hole(self):
        with self.assertRaises(PortError):
            find_all(Source('a;'), '$x;')

    def test_preprocessor_lines_match_as_a_whole(self):
        text = '#ifdef A\nx;\n#endif\n'
        self.assertEqual(len(holes(text, 'x;\n#endif')), 1)
        self.assertEqual(holes(text, 'A'), [])

    def test_captured_lines_lose_their_indentation(self):
        text = 'a {\n    if (b) {\n        c;\n    }\n}\n'
        self.assertEqual(holes(text, 'a { $$x }')[0]['x'],
                         'if (b) {\n    c;\n}')


SAMPLE = code('''
    type_init(first)

    static int second(int a)
    {
    #ifdef X
        if (a) {
    #else
        if (!a) {
    #endif
            return 1;
        }
        return 0;
    }
    struct third {
        int second;
    };
    /* a comment parts */
    DECLARE(thing)
    /* from what follows */
    typedef struct {
        int x;
    } Fourth;

    static const int fifth[] = {
        1, 2,
    };
    int second_user(int second);
    #define SIXTH 6
    #define SEVENTH(x) (x)
    ''')


class BoundsTest(unittest.TestCase):
    def text_of(self, scope):
        source = Source(SAMPLE)
        thing = find_definition(source, scope)
        return SAMPLE[thing.start:thing.end]

    def test_function_reaches_from_its_type_to_its_brace(self):
        text = self.text_of('function second')
        self.assertTrue(text.startswith('static int second'))
        self.assertTrue(text.endswith('return 0;\n}'))

    def test_macro_without_semicolon_is_not_swallowed(self):
        self.assertNotIn('type_init', self.text_of('function second'))
        self.assertTrue(self.text_of('struct Fourth').startswith('typedef'))

    def test_braces_in_both_branches_count_once(self):
        self.assertNotIn('third', self.text_of('function second'))

    def test_struct_by_tag_and_by_typedef(self):
        self.assertTrue(self.text_of('struct third').startswith('struct third'))
        self.assertTrue(self.text_of('struct Fourth').endswith('Fourth;'))

    def test_variable_prototype_and_macros(self):
        self.assertIn('1, 2', self.text_of('variable fifth'))
        self.assertEqual(self.text_of('prototype second_user'),
                         'int second_user(int second);')
        self.assertEqual(self.text_of('macro SIXTH'), '#define SIXTH 6')
        self.assertEqual(self.text_of('macro SEVENTH'),
                         '#define SEVENTH(x) (x)')

    def test_missing_and_double_definitions_are_refused(self):
        with self.assertRaisesRegex(Refused, 'found 0 times'):
            self.text_of('function nothing')
        with self.assertRaisesRegex(Refused, 'found 2 times'):
            find_definition(Source(SAMPLE + SAMPLE), 'function second')

    def test_prototype_is_not_the_function(self):
        source = Source('int f(void);\nint f(void)\n{\n}\n')
        self.assertTrue(find_definition(source, 'function f').body)
        self.assertFalse(find_definition(source, 'prototype f').body)

    def test_scope_bounds_the_search(self):
        source = Source('int f(void)\n{\n    x;\n}\nint g(void)\n{\n    x;\n}\n')
        first, limit = token_range(source, 'function g')
        self.assertEqual(len(find_all(source, 'x;', first, limit)), 1)

    def test_unknown_kind_of_scope_is_an_error(self):
        with self.assertRaises(PortError):
            token_range(Source(''), 'class X')
