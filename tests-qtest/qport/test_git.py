# SPDX-License-Identifier: GPL-2.0-or-later
"""Commits, mails, and what must not happen to the user's checkout."""

import os
import subprocess
import sys
import unittest

from qport_lib import cli
from support import TreeCase, run_qport, snapshot

SERIES = 'io-uring-flags'       # four patches, for the tree 'new'


class GitCase(TreeCase):
    def state(self, tree):
        """All that a failed command must leave alone."""
        return (snapshot(tree), self.git(tree, 'rev-parse', 'HEAD'),
                self.git(tree, 'for-each-ref'),
                self.git(tree, 'worktree', 'list'),
                self.git(tree, 'status', '--porcelain'),
                self.git(tree, 'config', '--list', '--local'))

    def refused(self, tree, said, *args):
        before = self.state(tree)
        code, out, err = run_qport(*args)
        self.assertEqual((code, out), (4, ''))
        self.assertIn(said, err)
        self.assertEqual(err.count('\n'), 1, err)
        self.assertEqual(self.state(tree), before)

    def apply(self, tree, branch='b', series=SERIES, *more):
        return run_qport('apply', series, tree, '--branch', branch, *more)


class ApplyTest(GitCase):
    def test_a_commit_for_each_patch(self):
        tree = self.repository('new')
        self.assertEqual(self.apply(tree)[0], 0)
        log = self.git(tree, 'log', '--format=%s', 'main..b').splitlines()
        self.assertEqual(len(log), 4)
        self.assertEqual(log[-1], 'iothread: create the AioContext in '
                                  'iothread_run()')

    def test_author_and_sign_off_are_the_users(self):
        tree = self.repository('new')
        self.apply(tree)
        text = self.git(tree, 'log', '-1', '--format=%an <%ae>%n%B', 'b')
        self.assertEqual(text.count('A Developer <dev@example.org>'), 2)
        self.assertIn('Signed-off-by: A Developer', text)

    def test_checkout_stays_where_it_is(self):
        tree = self.repository('new')
        before = self.state(tree)
        self.apply(tree)
        after = self.state(tree)
        self.assertEqual(before[:2], after[:2])
        self.assertEqual(before[3:], after[3:])

    def test_branch_holds_what_diff_shows(self):
        tree = self.repository('new')
        _, diff, _ = run_qport('diff', SERIES, tree)
        self.apply(tree)
        changed = self.git(tree, 'diff', '--name-only', 'main', 'b')
        self.assertEqual(changed.split(), [
            line[6:].strip() for line in diff.splitlines()
            if line.startswith('+++ b/')])

    def test_only_missing_patches_are_committed(self):
        tree = self.repository('new')
        self.apply(tree)
        self.git(tree, 'checkout', '-q', 'b~2')
        code, out, _ = self.apply(tree, 'rest')
        self.assertEqual(code, 0)
        self.assertIn('2 commits', out)
        self.assertEqual(self.git(tree, 'rev-parse', 'rest^{tree}'),
                         self.git(tree, 'rev-parse', 'b^{tree}'))

    def test_hooks_of_the_user_do_not_run(self):
        tree = self.repository('new')
        hook = os.path.join(tree, '.git', 'hooks', 'pre-commit')
        os.makedirs(os.path.dirname(hook), exist_ok=True)
        with open(hook, 'w', encoding='utf-8') as file:
            file.write('#!/bin/sh\nexit 1\n')
        os.chmod(hook, 0o755)
        self.assertEqual(self.apply(tree)[0], 0)

    def test_shallow_clone_gets_a_note(self):
        self.repository('new', 'origin')
        self.git(self.path('origin'), 'commit', '-q', '--allow-empty', '-m',
                 'Next')
        tree = self.path('shallow')
        subprocess.run(['git', 'clone', '-q', '--depth', '1',
                        'file://' + self.path('origin'), tree], check=True)
        self.git(tree, 'config', 'user.name', 'A Developer')
        self.git(tree, 'config', 'user.email', 'dev@example.org')
        code, _, err = self.apply(tree)
        self.assertEqual(code, 0)
        self.assertIn('shallow clone', err)

    def test_settings_of_the_user_do_not_matter(self):
        tree = self.repository('new')
        for key, value in (('diff.noprefix', 'true'), ('format.attach', 'x'),
                           ('format.coverLetter', 'true'),
                           ('core.autocrlf', 'true')):
            self.git(tree, 'config', key, value)
        self.assertEqual(self.apply(tree)[0], 0)
        out = run_qport('mails', SERIES, tree, '-o', self.path('out'))[1]
        self.assertEqual(len(out.split()), 4)
        with open(out.split()[0], encoding='utf-8') as file:
            self.assertIn('\n+++ b/', file.read())

    def test_git_that_calls_does_not_redirect_it(self):
        tree = self.repository('new')
        other = self.repository('new', 'other')
        os.environ['GIT_DIR'] = os.path.join(other, '.git')
        self.addCleanup(os.environ.pop, 'GIT_DIR', None)
        self.assertEqual(self.apply(tree)[0], 0)
        del os.environ['GIT_DIR']
        self.assertIn('b', self.git(tree, 'branch', '--list', 'b'))
        self.assertEqual(self.git(other, 'branch', '--list', 'b'), '')

    def test_killed_tool_leaves_no_worktree(self):
        tree = self.repository('new')
        fifo = self.path('started')
        os.mkfifo(fifo)
        with open(os.path.join(tree, 'scripts', 'checkpatch.pl'), 'w',
                  encoding='utf-8') as file:
            file.write(f'open(F, ">", "{fifo}"); print F "x"; close F;\n'
                       f'open(F, "<", "{fifo}"); <F>;\n')
        self.git(tree, 'commit', '-q', '-a', '-m', 'Hang')
        before = self.state(tree)
        tool = os.path.join(os.path.dirname(cli.HERE), 'qport')
        with subprocess.Popen([sys.executable, '-B', tool, 'apply', SERIES,
                               tree, '--branch', 'b'],
                              stderr=subprocess.PIPE, text=True) as process:
            with open(fifo, encoding='utf-8') as file:
                file.read()
            process.terminate()
            with open(fifo, 'w', encoding='utf-8') as file:
                file.write('go')
            err = process.communicate(timeout=60)[1]
        self.assertEqual(process.returncode, 4)
        self.assertIn('interrupted', err)
        self.assertEqual(self.state(tree), before)

    def test_works_in_a_linked_worktree(self):
        tree = self.repository('new')
        self.git(tree, 'worktree', 'add', '-q', self.path('linked'))
        self.assertEqual(self.apply(self.path('linked'))[0], 0)


class RefusalTest(GitCase):
    def test_no_git_checkout(self):
        tree = self.tree('new')
        before = snapshot(tree)
        code, _, err = self.apply(tree)
        self.assertEqual(code, 4)
        self.assertIn('not a git checkout', err)
        self.assertEqual(snapshot(tree), before)

    def test_tree_inside_another_checkout(self):
        self.repository('new', 'outer')
        self.tree('new', 'outer/inner')
        code, _, err = self.apply(self.path('outer', 'inner'))
        self.assertEqual(code, 4)
        self.assertIn('not the top of its git checkout', err)

    def test_dirty_tree(self):
        tree = self.repository('new')
        with open(os.path.join(tree, 'block.c'), 'a', encoding='utf-8') as file:
            file.write('int dirty;\n')
        self.refused(tree, 'uncommitted changes (M block.c)', 'apply', SERIES,
                     tree, '--branch', 'b')

    def test_untracked_files_are_no_dirt(self):
        tree = self.repository('new')
        with open(os.path.join(tree, 'notes'), 'w', encoding='utf-8') as file:
            file.write('mine\n')
        self.assertEqual(self.apply(tree)[0], 0)

    def test_no_identity(self):
        tree = self.repository('new')
        for key, said in (('user.name', 'no user.name'),
                          ('user.email', 'no user.email')):
            value = self.git(tree, 'config', key)
            self.git(tree, 'config', '--unset', key)
            self.refused(tree, said, 'apply', SERIES, tree, '--branch', 'b')
            self.git(tree, 'config', key, value)

    def test_branch_that_exists(self):
        tree = self.repository('new')
        self.refused(tree, "branch 'main' already", 'apply', SERIES, tree,
                     '--branch', 'main')

    def test_branch_that_is_no_name(self):
        tree = self.repository('new')
        self.refused(tree, 'no branch name', 'apply', SERIES, tree,
                     '--branch', 'a..b')

    def test_series_that_does_not_fit(self):
        tree = self.repository('mid')
        self.refused(tree, 'does not fit', 'apply', SERIES, tree, '--branch',
                     'b')
        self.refused(tree, 'does not fit', 'mails', SERIES, tree, '-o',
                     self.path('out'))

    def test_series_that_is_there(self):
        tree = self.repository('new')
        self.apply(tree)
        self.git(tree, 'checkout', '-q', 'b')
        self.refused(tree, 'nothing to do', 'apply', SERIES, tree, '--branch',
                     'again')

    def test_checkpatch_complaint_undoes_all(self):
        tree = self.repository('new')
        with open(os.path.join(tree, 'scripts', 'checkpatch.pl'), 'w',
                  encoding='utf-8') as file:
            file.write('my $n = grep { /NO_SQARRAY/ } <>;\n'
                       'print "WARNING: it says NO_SQARRAY\\n" if $n;\n'
                       'print "total: 0 errors, ", $n ? 1 : 0, " warnings\\n"')
        self.git(tree, 'commit', '-q', '-a', '-m', 'Be strict')
        self.refused(tree, 'it says NO_SQARRAY', 'apply', SERIES, tree,
                     '--branch', 'b')
        self.assertEqual(self.apply(tree, 'b', SERIES, '--no-checks')[0], 0)

    def test_qapi_complaint_undoes_all(self):
        tree = self.repository('new')
        for name, text in (('scripts/qapi-gen.py',
                            'import sys\nsys.exit("qom.json:3: bad")\n'),
                           ('qapi/qapi-schema.json', '')):
            with open(os.path.join(tree, name), 'w', encoding='utf-8') as file:
                file.write(text)
        self.git(tree, 'add', '-A')
        self.git(tree, 'commit', '-q', '-m', 'Check schemas')
        self.refused(tree, 'qapi-gen: qom.json:3: bad', 'apply',
                     'aio-max-events', tree, '--branch', 'b')

    def test_file_that_is_no_text(self):
        tree = self.repository('new')
        with open(os.path.join(tree, 'iothread.c'), 'wb') as file:
            file.write(b'\xff\xfe\x00')
        self.git(tree, 'commit', '-q', '-a', '-m', 'Spoil')
        self.refused(tree, 'iothread.c', 'apply', SERIES, tree, '--branch', 'b')


class MailTest(GitCase):
    def mails(self, tree, *more):
        return run_qport('mails', SERIES, tree, '-o', self.path('out'), *more)

    def test_am_gives_the_tree_of_apply(self):
        tree = self.repository('new')
        self.apply(tree)
        code, out, _ = self.mails(tree)
        self.assertEqual(code, 0)
        self.git(tree, 'checkout', '-q', '-b', 'mailed')
        self.git(tree, 'am', '-q', *out.split())
        self.assertEqual(self.git(tree, 'rev-parse', 'mailed^{tree}'),
                         self.git(tree, 'rev-parse', 'b^{tree}'))
        self.assertEqual(self.git(tree, 'log', '--format=%B', 'main..mailed'),
                         self.git(tree, 'log', '--format=%B', 'main..b'))

    def test_cover_letter_has_title_text_and_base(self):
        tree = self.repository('new')
        _, out, _ = self.mails(tree, '--cover', '-v', '2')
        with open(out.split()[0], encoding='utf-8') as file:
            text = file.read()
        self.assertIn('[PATCH v2 0/4] aio: set up the io_uring', text)
        self.assertIn('IORING_SETUP_R_DISABLED', text)
        self.assertNotIn('***', text)
        self.assertIn('base-commit: ' + self.git(tree, 'rev-parse', 'HEAD'),
                      text)

    def test_nothing_is_left_in_the_repository(self):
        tree = self.repository('new')
        before = self.state(tree)
        self.mails(tree, '--cover')
        self.assertEqual(self.state(tree), before)

    def test_mails_that_exist_are_not_overwritten(self):
        tree = self.repository('new')
        self.mails(tree)
        before = snapshot(self.path('out'))
        self.refused(tree, 'exists already', 'mails', SERIES, tree, '-o',
                     self.path('out'))
        self.assertEqual(snapshot(self.path('out')), before)


if __name__ == '__main__':
    unittest.main()
