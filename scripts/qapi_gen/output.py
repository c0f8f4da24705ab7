# SPDX-License-Identifier: GPL-2.0-or-later
"""A generated file: its frame, and writing it only when that changes something."""

import os

from .names import guard


class Output:
    """The text of one generated C file; @module is None for the built-in types, WHOLE for what has no module."""

    WHOLE = object()

    def __init__(self, module, what, suffix):
        if module is Output.WHOLE:
            base, self.origin = f'qapi-{what}', 'the whole schema'
        else:
            self.module_name = module.name if module else 'builtin'
            base = f'qapi-{what}-{self.module_name}'
            self.origin = f'{module.name}.json' if module else 'the built-in types'
        self.what = what
        self.suffix = suffix
        self.name = f'{base}.{suffix}'
        self.includes = []
        self.lines = []
        if suffix == 'c':
            self.include(f'qapi/{base}.h')

    def include(self, path):
        if path not in self.includes:
            self.includes.append(path)

    def line(self, text=''):
        self.lines.append(text)

    def text(self):
        parts = ['/* SPDX-License-Identifier: GPL-2.0-or-later */',
                 f'/* Made by qapi-gen from {self.origin}: {self.what}. */']
        macro = guard(self.name)
        if self.suffix == 'h':
            parts += [f'#ifndef {macro}', f'#define {macro}']
        parts += ['']
        parts += [f'#include "{path}"' for path in self.includes]
        parts += [''] + self.lines
        if self.suffix == 'h':
            parts += ['', '#endif']
        return '\n'.join(parts) + '\n'

    def write(self, folder):
        path = os.path.join(folder, self.name)
        text = self.text()
        try:
            with open(path, encoding='utf-8') as file:
                if file.read() == text:
                    return
        except FileNotFoundError:
            pass
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text)
