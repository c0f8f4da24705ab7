# SPDX-License-Identifier: GPL-2.0-or-later
"""All series against real checkouts, for those who have them.

QPORT_TREES names a directory whose subdirectories are git checkouts of QEMU,
one a release. They are only read: commits are made in temporary worktrees.
"""

import os
import subprocess

from qport_lib.series import series_names
from qport_lib import cli
from support import FIXTURES, TreeCase, run_qport

TREES = os.environ.get('QPORT_TREES', '')


def expected(version):
    """The verdicts that are right for a release, by series."""
    since = tuple(int(n) for n in version.split('.'))
    return {
        'iothread-aio-max-batch': 0 if since <= (6, 0, 50) else 1,
        'io-uring-flags': 0 if since >= (10, 2, 0) else 3,
        'linux-aio-late-clear': 0,
        'aio-max-events': 0 if since >= (7, 1, 0) else 3,
        'io-uring-max-batch': 0 if since >= (6, 1, 0) else 3,
        'self-scheduled-bh': 0,
        'file-posix-nonblock': 0,
        'aio-poll-yield': 0,
    }


def checkouts():
    found = []
    for name in sorted(os.listdir(TREES)):
        path = os.path.join(TREES, name)
        if os.path.isfile(os.path.join(path, 'VERSION')) and (
                os.path.exists(os.path.join(path, '.git'))):
            with open(os.path.join(path, 'VERSION'), encoding='utf-8') as file:
                found.append((path, file.read().strip()))
    return found


class MatrixTest(TreeCase):
    def setUp(self):
        super().setUp()
        if not TREES:
            self.skipTest('QPORT_TREES names no directory of checkouts')
        self.trees = checkouts()
        self.assertTrue(self.trees, f'no checkouts in {TREES}')

    def test_verdicts(self):
        for path, version in self.trees:
            want = expected(version)
            self.assertEqual(set(want), set(series_names(cli.PATCHES)))
            for name, code in want.items():
                with self.subTest(tree=path, series=name):
                    got, out, _ = run_qport('check', name, path)
                    self.assertEqual(got, code, out)

    def test_commits_pass_checkpatch_and_mails_give_the_same_tree(self):
        os.environ.update(GIT_AUTHOR_NAME='T', GIT_AUTHOR_EMAIL='t@example.org',
                          GIT_COMMITTER_NAME='T',
                          GIT_COMMITTER_EMAIL='t@example.org')
        self.addCleanup(lambda: [os.environ.pop(k) for k in list(os.environ)
                                 if k.startswith(('GIT_AUTHOR_',
                                                  'GIT_COMMITTER_'))])
        for path, version in self.trees:
            for name, code in expected(version).items():
                if code == 0:
                    with self.subTest(tree=path, series=name):
                        self.mail_and_apply(path, name)

    def mail_and_apply(self, path, name):
        """The mails, applied to a copy of the files they touch, must make the
        files that diff shows."""
        out = self.path(os.path.basename(path), name)
        code, names, err = run_qport('mails', name, path, '-o', out)
        self.assertEqual(code, 0, err)
        _, diff, _ = run_qport('diff', name, path)
        trees = []
        for kind, data in (('mails', names.split()), ('diff', [diff])):
            index = self.path(f'index-{kind}')
            env = {**os.environ, 'GIT_INDEX_FILE': index}

            def git(*args, stdin=None):
                done = subprocess.run(['git', '-C', path, *args], env=env,
                                      input=stdin, capture_output=True,
                                      text=True, check=True)
                return done.stdout.strip()
            git('read-tree', 'HEAD')
            for item in data:
                if kind == 'mails':
                    git('apply', '--cached', item)
                else:
                    git('apply', '--cached', '-', stdin=item)
            trees.append(git('write-tree'))
            os.remove(index)
        self.assertEqual(*trees)

    def test_no_run_of_tokens_is_upstreams(self):
        args = [a for path, _ in self.trees for a in ('--against', path)]
        code, out, _ = run_qport('lint', *args, FIXTURES)
        self.assertEqual((code, out), (0, ''))
