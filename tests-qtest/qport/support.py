# SPDX-License-Identifier: GPL-2.0-or-later
"""Miniature trees and helpers that the tests share."""

import contextlib
import io
import os
import shutil
import subprocess
import tempfile
import textwrap
import unittest

from qport_lib import cli
from qport_lib.series import load_series, series_names

HERE = os.path.dirname(os.path.abspath(__file__))
FIXTURES = os.path.join(HERE, 'fixtures')
LAYERS = {'old': ('all', 'old'), 'mid': ('all', 'later', 'mid'),
          'new': ('all', 'later', 'new')}

# What each series makes of each miniature tree: the exit code of check.
EXPECTED = {
    'iothread-aio-max-batch': {'old': 0, 'mid': 3, 'new': 3},
    'io-uring-flags': {'old': 3, 'mid': 3, 'new': 0},
    'linux-aio-late-clear': {'old': 0, 'mid': 0, 'new': 0},
    'aio-max-events': {'old': 3, 'mid': 0, 'new': 0},
    'io-uring-max-batch': {'old': 3, 'mid': 0, 'new': 0},
    'self-scheduled-bh': {'old': 0, 'mid': 0, 'new': 0},
    'file-posix-nonblock': {'old': 0, 'mid': 0, 'new': 0},
    'aio-poll-yield': {'old': 0, 'mid': 0, 'new': 0},
}
FITTING = [(series, shape) for series, row in EXPECTED.items()
           for shape, code in row.items() if code == 0]


def all_series():
    return [load_series(cli.PATCHES, name)
            for name in series_names(cli.PATCHES)]


def make_tree(shape, path):
    """Lay a miniature tree out below path."""
    for layer in LAYERS[shape]:
        shutil.copytree(os.path.join(FIXTURES, layer), path,
                        dirs_exist_ok=True)
    return path


def snapshot(path):
    """Every file below path with its bytes, .git left out."""
    found = {}
    for folder, folders, names in os.walk(path):
        folders[:] = [f for f in folders if f != '.git']
        for name in names:
            full = os.path.join(folder, name)
            with open(full, 'rb') as file:
                found[os.path.relpath(full, path)] = file.read()
    return found


def run_qport(*args):
    """Run the tool in this process: (exit code, stdout, stderr)."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = cli.main(list(args))
        except SystemExit as end:
            code = end.code
    return code, out.getvalue(), err.getvalue()


def code(text):
    return textwrap.dedent(text).lstrip('\n')


class TreeCase(unittest.TestCase):
    """A case with a scratch directory and git kept away from the user's."""

    ENV = {'GIT_CONFIG_GLOBAL': os.devnull, 'GIT_CONFIG_SYSTEM': os.devnull,
           'GIT_CONFIG_NOSYSTEM': '1', 'LC_ALL': 'C'}

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix='qport-test-')
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        before = {k: os.environ.get(k) for k in self.ENV}
        os.environ.update(self.ENV)
        for key in list(os.environ):
            if key.startswith(('GIT_AUTHOR_', 'GIT_COMMITTER_')):
                before[key] = os.environ.pop(key)

        def restore():
            for key, value in before.items():
                if value is None:
                    os.environ.pop(key, None)
                else:
                    os.environ[key] = value
        self.addCleanup(restore)

    def path(self, *parts):
        return os.path.join(self.dir, *parts)

    def tree(self, shape, name='tree'):
        return make_tree(shape, self.path(name))

    def git(self, tree, *args):
        done = subprocess.run(['git', '-C', tree, *args], check=True,
                              capture_output=True, text=True)
        return done.stdout.strip()

    def repository(self, shape, name='tree'):
        tree = self.tree(shape, name)
        self.git(tree, 'init', '-q', '-b', 'main')
        self.git(tree, 'config', 'user.name', 'A Developer')
        self.git(tree, 'config', 'user.email', 'dev@example.org')
        self.git(tree, 'add', '-A')
        self.git(tree, 'commit', '-q', '-m', 'Start')
        return tree
