# SPDX-License-Identifier: GPL-2.0-or-later
"""Edits of schema files and option text, on invented ones."""

import unittest

from qport_lib import Refused
from qport_lib.docs import TEXT_OPS
from support import code

ALIGNED = code('''
    ##
    # @Thing:
    #
    # About things
    #
    # @one-name: a text that
    #            goes on here
    #
    # @two: short
    #
    # Since: 1.0
    ##
    { 'struct': 'Thing',
      'data': { 'one-name': 'int',
                '*two': { 'type': 'str', 'if': 'X' } } }
    ''')
FIXED = ALIGNED.replace('#            goes', '#     goes')


def member(text, **fields):
    edit = {'struct': 'Thing', 'member': 'three', 'after': 'two',
            'type': 'int', 'doc': 'word ' * 20, **fields}
    return TEXT_OPS['qapi-member'](text, edit, {})


class SchemaTest(unittest.TestCase):
    def test_data_line_is_aligned_with_its_neighbour(self):
        self.assertIn(
            "'*two': { 'type': 'str', 'if': 'X' },\n"
            "            'three': 'int' } }", member(ALIGNED))

    def test_optional_member_gets_its_star(self):
        self.assertIn("'*three': 'int'", member(ALIGNED, optional=True))

    def test_documentation_aligns_as_its_neighbours_do(self):
        text = member(ALIGNED)
        self.assertIn('\n#\n# @three: word', text)
        self.assertIn('\n#         word', text)

    def test_documentation_is_indented_as_its_neighbours_are(self):
        text = member(FIXED)
        self.assertIn('\n#     word', text)
        self.assertTrue(all(len(line) <= 70 for line in text.splitlines()))

    def test_sentences_part_by_two_spaces(self):
        self.assertIn('One.  Two.', member(FIXED, doc='One. Two.'))

    def test_place_follows_the_named_member(self):
        text = member(ALIGNED, after='one-name')
        self.assertLess(text.index('@three'), text.index('@two'))
        self.assertIn("'one-name': 'int',\n            'three': 'int',\n",
                      text)

    def test_same_member_name_in_another_struct_is_left_alone(self):
        other = ALIGNED.replace('Thing', 'Other')
        text = member(other + '\n' + ALIGNED)
        self.assertTrue(text.startswith(other))

    def test_paragraphs_of_a_member_stay_together(self):
        text = ALIGNED.replace('# @two: short\n',
                               '# @two: short\n#\n#     and more\n')
        self.assertIn('and more\n#\n# @three', member(text))

    def test_present_member_is_refused(self):
        with self.assertRaisesRegex(Refused, 'already'):
            member(ALIGNED, member='one-name')

    def test_missing_struct_member_or_documentation_is_refused(self):
        for text, fields in ((ALIGNED, {'struct': 'None'}),
                             (ALIGNED, {'after': 'none'}),
                             (ALIGNED + ALIGNED, {}),
                             (ALIGNED[ALIGNED.index('{'):], {})):
            with self.assertRaises(Refused):
                member(text, **fields)


class OptionsTest(unittest.TestCase):
    TEXT = ('SRST\n    ``-object t,id=id,a=a``\n        Makes it.\n\n'
            '        The ``a`` parameter\n        is one.\n\n    Next\nERST\n')

    def test_line_grows_before_its_last_mark(self):
        self.assertIn('``-object t,id=id,a=a,b=b``\n', TEXT_OPS['text-insert'](
            self.TEXT, {'line': '``-object t,', 'before': '``',
                        'text': ',b=b'}, {}))

    def test_paragraph_is_indented_and_wrapped(self):
        text = TEXT_OPS['paragraph-after'](
            self.TEXT, {'line': 'The ``a`` parameter', 'text': 'word ' * 40},
            {})
        self.assertIn('is one.\n\n        word', text)
        self.assertTrue(all(len(line) <= 72 for line in text.splitlines()))

    def test_line_that_occurs_twice_is_refused(self):
        with self.assertRaises(Refused):
            TEXT_OPS['paragraph-after'](self.TEXT * 2, {
                'line': 'The ``a`` parameter', 'text': 'x'}, {})

    def test_literal_replacement(self):
        self.assertIn('Makes both.', TEXT_OPS['text-replace'](
            self.TEXT, {'line': 'Makes it.', 'text': 'Makes both.'}, {}))

    def test_lines_go_before_the_stop(self):
        self.assertEqual(TEXT_OPS['text-insert-line'](
            '/*\n * f:\n * @a: x\n */\n', {
                'line': '* f:', 'stop': ' */', 'text': ' * @b: y\n'}, {}),
            '/*\n * f:\n * @a: x\n * @b: y\n */\n')
