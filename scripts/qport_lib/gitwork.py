# SPDX-License-Identifier: GPL-2.0-or-later
"""Commits and mails: everything that runs git or checkpatch."""

import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile

from . import PortError


# What a calling git or the user's settings must not change.
FOREIGN = ('GIT_DIR', 'GIT_WORK_TREE', 'GIT_INDEX_FILE', 'GIT_COMMON_DIR',
           'GIT_OBJECT_DIRECTORY', 'GIT_NAMESPACE', 'GIT_PREFIX')
SETTINGS = ('-c', 'diff.noprefix=false', '-c', 'diff.mnemonicPrefix=false',
            '-c', 'format.attach=', '-c', 'core.autocrlf=false')


def git(tree, *args, check=True, stdin=None):
    """Run git in a tree; the first line of its complaint becomes the error."""
    env = {k: v for k, v in os.environ.items() if k not in FOREIGN}
    try:
        done = subprocess.run(['git', '-C', tree, *SETTINGS, *args],
                              capture_output=True, text=True, check=False,
                              input=stdin, env={**env, 'LC_ALL': 'C'})
    except FileNotFoundError:
        raise PortError('git is not installed') from None
    if check and done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines()
        said = lines[0] if lines else 'failed'
        raise PortError(f'git {args[0]}: {said}')
    return done.stdout.strip() if check else done


def require_clean_repository(tree):
    """Refuse what could not become a commit, each with its own line."""
    done = git(tree, 'rev-parse', '--show-toplevel', check=False)
    if done.returncode:
        raise PortError(f'{tree}: not a git checkout (a tarball will do for '
                        f'check and diff, commits need git)')
    if os.path.realpath(done.stdout.strip()) != os.path.realpath(tree):
        raise PortError(f'{tree}: not the top of its git checkout')
    if git(tree, 'rev-parse', '-q', '--verify', 'HEAD', check=False).returncode:
        raise PortError(f'{tree}: has no commit yet')
    dirty = git(tree, 'status', '--porcelain', '--untracked-files=no',
                '--ignore-submodules=all')
    if dirty:
        first = dirty.splitlines()[0].strip()
        raise PortError(f'{tree}: has uncommitted changes ({first}); commit or '
                        f'stash them first')
    for key in ('user.name', 'user.email'):
        if not (os.environ.get('GIT_AUTHOR_' + key[5:].upper()) or
                git(tree, 'config', key, check=False).stdout.strip()):
            raise PortError(f'git has no {key}; set it with: '
                            f'git config --global {key} ...')


def is_shallow(tree):
    return git(tree, 'rev-parse', '--is-shallow-repository') == 'true'


def require_free_branch(tree, branch):
    if git(tree, 'check-ref-format', '--branch', branch,
           check=False).returncode:
        raise PortError(f'{branch!r} is no branch name')
    if not git(tree, 'rev-parse', '-q', '--verify', f'refs/heads/{branch}',
               check=False).returncode:
        raise PortError(f'there is a branch {branch!r} already')


@contextlib.contextmanager
def temporary_worktree(tree):
    """A detached worktree at HEAD that is gone afterwards, come what may."""
    holder = tempfile.mkdtemp(prefix='qport-')
    path = os.path.join(holder, 'tree')
    try:
        git(tree, 'worktree', 'add', '--quiet', '--detach', path, 'HEAD')
        yield path
    finally:
        git(tree, 'worktree', 'remove', '--force', path, check=False)
        shutil.rmtree(holder, ignore_errors=True)
        git(tree, 'worktree', 'prune', check=False)


def message(patch, since):
    """The commit message, body wrapped as it was written."""
    parts = [patch.subject, patch.body.replace('@SINCE@', since)]
    if patch.trailers:
        parts.append('\n'.join(patch.trailers))
    return '\n\n'.join(parts) + '\n'


def run_checkpatch(work):
    """The tree's own checkpatch on HEAD; warnings count as errors."""
    script = os.path.join(work, 'scripts', 'checkpatch.pl')
    if not os.path.isfile(script):
        return
    mail = git(work, 'format-patch', '-1', '--stdout', 'HEAD')
    try:
        done = subprocess.run(['perl', script, '-'], input=mail + '\n',
                              cwd=work, capture_output=True, text=True,
                              check=False)
    except FileNotFoundError:
        raise PortError('perl is not installed; checkpatch needs it') from None
    total = re.search(r'total: (\d+) errors?, (\d+) warnings?', done.stdout)
    if total and total.groups() == ('0', '0') and done.returncode == 0:
        return
    said = [line for line in done.stdout.splitlines()
            if line.startswith(('ERROR', 'WARNING'))]
    subject = git(work, 'log', '-1', '--format=%s')
    raise PortError(f'checkpatch on "{subject}": ' +
                    ('; '.join(said) or done.stderr.strip() or 'failed'))


def run_qapi_gen(work, names):
    """The tree's own schema parser; it is strict about documentation."""
    script = os.path.join(work, 'scripts', 'qapi-gen.py')
    schema = os.path.join(work, 'qapi', 'qapi-schema.json')
    if not (any(n.startswith('qapi/') for n in names) and
            os.path.isfile(script) and os.path.isfile(schema)):
        return
    with tempfile.TemporaryDirectory(prefix='qport-qapi-') as out:
        done = subprocess.run([sys.executable, '-B', script, '-o', out, schema],
                              capture_output=True, text=True, check=False)
    if done.returncode:
        said = [line for line in done.stderr.splitlines()
                if not line.startswith('In file included')]
        raise PortError('qapi-gen: ' + (said[0] if said else 'failed'))


def commit_all(work, outcomes, since, checks=True):
    """One signed-off commit for each patch that applies."""
    for outcome in outcomes:
        if outcome.state != 'applies':
            continue
        for name, text in outcome.files.items():
            path = os.path.join(work, name)
            with open(path, 'w', encoding='utf-8', newline='') as file:
                file.write(text)
        git(work, 'add', '--', *outcome.files)
        git(work, 'commit', '--quiet', '--no-verify', '--signoff', '--file=-',
            stdin=message(outcome.patch, since))
        if checks:
            run_checkpatch(work)
            run_qapi_gen(work, outcome.files)
    return git(work, 'rev-parse', 'HEAD')


def _fill_cover(path, series, since):
    with open(path, encoding='utf-8') as file:
        text = file.read()
    blurb = series.cover.replace('@SINCE@', since)
    for mark, new in (('*** SUBJECT HERE ***', series.title),
                      ('*** BLURB HERE ***', blurb)):
        if mark not in text:
            raise PortError('git format-patch made an unknown cover letter')
        text = text.replace(mark, new)
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text)


def write_mails(work, base, folder, series, since, cover, reroll):
    """git format-patch into folder, all files or none."""
    with tempfile.TemporaryDirectory(prefix='qport-mails-') as spool:
        args = ['format-patch', '--quiet', f'--base={base}', '-o', spool]
        if reroll:
            args.append(f'--reroll-count={reroll}')
        args.append('--cover-letter' if cover else '--no-cover-letter')
        git(work, *args, f'{base}..HEAD')
        names = sorted(os.listdir(spool))
        if cover:
            _fill_cover(os.path.join(spool, names[0]), series, since)
        os.makedirs(folder, exist_ok=True)
        there = [n for n in names if os.path.exists(os.path.join(folder, n))]
        if there:
            raise PortError(f'{folder}: {there[0]} exists already')
        for name in names:
            shutil.move(os.path.join(spool, name), os.path.join(folder, name))
    return [os.path.join(folder, name) for name in names]
