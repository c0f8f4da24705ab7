# SPDX-License-Identifier: GPL-2.0-or-later
"""Patched miniature trees, compiled against small fakes, must work."""

import os
import shlex
import shutil
import subprocess

from qport_lib import cli
from qport_lib.engine import run_series
from qport_lib.series import load_series
from qport_lib.tree import Tree
from support import HERE, FITTING, TreeCase

FAKES = os.path.join(HERE, 'fakes')
# The program, the sources it is linked with, and where headers are.
PROGRAMS = {
    'old': (['util/async.c', 'util/aio-posix.c', 'monitor/hmp-cmds.c'],
            ['include/sysemu']),
    'mid': ([], ['include/sysemu']),
    'new': (['iothread.c', 'util/async.c', 'util/aio-posix.c',
             'util/fdmon-io_uring.c', 'util/main-loop.c', 'block/linux-aio.c',
             'event-loop-base.c', 'monitor/hmp-cmds.c'], ['include/system']),
}


class RunTest(TreeCase):
    def patched(self, shape, leave_out=()):
        path = self.tree(shape)
        tree = Tree(path)
        for name, where in FITTING:
            if where == shape and name not in leave_out:
                verdict, _, reason = run_series(
                    tree, load_series(cli.PATCHES, name))
                self.assertEqual(verdict, 0, f'{name}: {reason}')
        for name, text in tree.changes().items():
            with open(os.path.join(path, name), 'w', encoding='utf-8') as file:
                file.write(text)
        return path

    def build(self, shape, tree, sources=None, program=None):
        cc = shlex.split(os.environ.get('CC', 'cc'))
        glib = subprocess.run(['pkg-config', '--cflags', '--libs', 'glib-2.0'],
                              capture_output=True, text=True, check=False)
        if glib.returncode or not shutil.which(cc[0]):
            self.skipTest('needs a C compiler, pkg-config and GLib')
        files, folders = PROGRAMS[shape]
        moved = os.path.join(tree, 'include', 'block', 'aio.h')
        if shape == 'new':
            os.makedirs(os.path.dirname(moved), exist_ok=True)
            shutil.copy(os.path.join(FAKES, 'aio-moved.h'), moved)
        args = ['-std=gnu17', '-g', '-Wall', '-Werror', '-Wno-unused',
                '-DFAKE_LAIO_MAX_EVENTS' if shape != 'old' else '-DFAKE_OLD',
                '-I', FAKES, '-I', tree]
        for folder in folders + ['include']:
            args += ['-I', os.path.join(tree, folder)]
        args += [os.path.join(FAKES, f'run-{program or shape}.c'),
                 os.path.join(FAKES, 'fake.c')]
        args += [os.path.join(tree, f)
                 for f in (files if sources is None else sources)]
        out = self.path('program')
        done = subprocess.run(cc + args + ['-o', out, '-pthread'] +
                              shlex.split(glib.stdout), capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return out

    def run_program(self, shape, sources=None, name=None):
        tree = self.patched(shape)
        program = self.build(shape, tree, sources, name)
        done = subprocess.run([program], capture_output=True, text=True,
                              check=False, timeout=60)
        self.assertEqual((done.returncode, done.stdout), (0, ''))

    def test_tree_before_6_1(self):
        self.run_program('old')

    def test_tree_from_7_1_to_10_1(self):
        self.run_program('mid')

    def test_tree_from_10_2_on(self):
        self.run_program('new')

    def test_files_before_11_0(self):
        self.run_program('old', [], 'file')

    def test_files_from_11_0_on(self):
        self.run_program('new', [], 'file')

    def test_polling_before_6_1(self):
        self.run_program('old', [], 'poll')

    def test_polling_from_7_1_to_10_1(self):
        self.run_program('mid', [], 'poll')

    def test_polling_from_10_2_on(self):
        self.run_program('new', [], 'poll')

    def test_program_notices_a_missing_series(self):
        tree = self.patched('old', leave_out=('self-scheduled-bh',))
        done = subprocess.run([self.build('old', tree)], capture_output=True,
                              text=True, check=False, timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertIn('notify_me == 2 does not hold', done.stdout)
