# SPDX-License-Identifier: GPL-2.0-or-later
"""The command line of qport."""

import argparse
import difflib
import json
import os
import sys

from . import PortError, Refused, gitwork, lint, table
from .engine import (UNSUPPORTED, UPSTREAM, VERDICTS, is_upstream, run_hunk,
                     run_patch, run_series)
from .series import load_series, series_names
from .tree import Tree

HERE = os.path.dirname(os.path.abspath(__file__))
PATCHES = os.path.normpath(os.path.join(HERE, '..', '..', 'patches'))

DESCRIPTION = 'Turn a series into commits and mails for a QEMU checkout.'
EPILOG = '''
check exits 0 if the series applies, 1 if all of it is upstream already, 2 if
part of it is, 3 if the tree has a shape it does not know. Everything else
exits 0 on success and 4 on an error.

  qport check io-uring-flags ~/qemu
  qport apply io-uring-flags ~/qemu --branch io-uring-flags
  qport mails io-uring-flags ~/qemu -o ~/outgoing --cover
'''


def note(text):
    print(f'qport: {text}', file=sys.stderr)


def cmd_list(args):
    for name in series_names(args.patches):
        series = load_series(args.patches, name)
        print(f'{name}: {series.title} [{series.range}]')
        for patch in series.patches:
            print(f'    {patch.slug}: {patch.subject}')


def _evaluate(args):
    series = load_series(args.patches, args.series)
    tree = Tree(args.tree)
    return series, tree, *run_series(tree, series)


def cmd_check(args):
    series, tree, verdict, outcomes, reason = _evaluate(args)
    if args.json:
        print(json.dumps({
            'series': series.name, 'version': tree.version,
            'since': tree.since, 'verdict': VERDICTS[verdict],
            'exit': verdict, 'reason': reason,
            'patches': [{'patch': o.patch.slug, 'state': o.state,
                         'reason': o.reason, 'files': sorted(o.files),
                         'shapes': o.shapes} for o in outcomes]}, indent=2))
        return verdict
    print(f'{series.name} on {tree.version}: {VERDICTS[verdict]} ({reason})')
    for outcome in outcomes:
        reason = f': {outcome.reason}' if outcome.reason else ''
        print(f'    {outcome.patch.slug}: {outcome.state}{reason}')
    return verdict


def _require_work(series, verdict, reason):
    if verdict == UNSUPPORTED:
        raise PortError(f'{series.name} does not fit: {reason}')
    if verdict == UPSTREAM:
        raise PortError(f'{series.name}: nothing to do, {reason}')


def cmd_diff(args):
    series, tree, verdict, _, reason = _evaluate(args)
    _require_work(series, verdict, reason)
    sys.stdout.write(tree.diff())


def _check_order(args, series):
    """Series that must come first, or must not be there."""
    for name in series.requires:
        other = load_series(args.patches, name)
        if run_series(Tree(args.tree), other)[0] != UPSTREAM:
            raise PortError(f'{series.name} needs {name} first')
    for name in series.conflicts:
        other = load_series(args.patches, name)
        tree = Tree(args.tree)
        if any(is_upstream(tree, patch) for patch in other.patches):
            raise PortError(f'{series.name} cannot be combined with {name}')


def _prepare(args, branch=None):
    """Everything that can be refused before git is touched."""
    series = load_series(args.patches, args.series)
    tree = Tree(args.tree)
    gitwork.require_clean_repository(args.tree)
    if branch is not None:
        gitwork.require_free_branch(args.tree, branch)
    if gitwork.is_shallow(args.tree):
        note(f'{args.tree} is a shallow clone: the commits are good, but to '
             f'rebase or send them run "git fetch --unshallow" first')
    _check_order(args, series)
    verdict, outcomes, reason = run_series(tree, series)
    _require_work(series, verdict, reason)
    return series, tree, outcomes


def cmd_apply(args):
    series, tree, outcomes = _prepare(args, args.branch)
    with gitwork.temporary_worktree(args.tree) as work:
        head = gitwork.commit_all(work, outcomes, tree.since,
                                  not args.no_checks)
    gitwork.git(args.tree, 'branch', args.branch, head)
    done = sum(1 for o in outcomes if o.state == 'applies')
    print(f'{series.name}: {done} commits on branch {args.branch}')


def cmd_mails(args):
    series, tree, outcomes = _prepare(args)
    base = gitwork.git(args.tree, 'rev-parse', 'HEAD')
    with gitwork.temporary_worktree(args.tree) as work:
        gitwork.commit_all(work, outcomes, tree.since)
        names = gitwork.write_mails(work, base, os.path.abspath(args.output),
                                    series, tree.since, args.cover,
                                    args.reroll_count)
    print('\n'.join(names))


def _find_hunk(args):
    parts = args.hunk.split('/')
    if len(parts) != 3:
        raise PortError('a hunk is named SERIES/PATCH/HUNK, PATCH may be its '
                        'number')
    series = load_series(args.patches, parts[0])
    for patch in series.patches:
        if patch.slug == parts[1] or patch.slug.split('-')[0] == parts[1]:
            for hunk in patch.hunks:
                if hunk['id'] == parts[2]:
                    return series, patch, hunk
            known = ', '.join(h['id'] for h in patch.hunks)
            raise PortError(f'no hunk {parts[2]!r}; there are: {known}')
    raise PortError(f'no patch {parts[1]!r} in {series.name}')


def cmd_explain(args):
    """Run what comes before the hunk, then each of its shapes alone."""
    series, patch, hunk = _find_hunk(args)
    tree = Tree(args.tree)
    for earlier in series.patches:
        if earlier is patch:
            break
        outcome = run_patch(tree, earlier)
        if outcome.state == 'refused':
            note(f'{earlier.slug} is refused: {outcome.reason}')
    if is_upstream(tree, patch):
        print(f'{patch.slug} is upstream already; nothing is done')
        return
    for other in patch.hunks:
        if other is hunk:
            break
        try:
            run_hunk(tree, other)
        except Refused as err:
            note(str(err))
    print(f'{args.hunk} in {tree.pick(hunk["file"])}')
    for shape in hunk['shape']:
        saved = tree.snapshot()
        single = {'id': hunk['id'], 'file': hunk['file'], 'shape': [shape]}
        try:
            run_hunk(tree, single)
        except Refused as err:
            print(f'  shape {shape["name"]}: refused: {err}')
            continue
        print(f'  shape {shape["name"]}: fits')
        for name, text in tree.changes(saved).items():
            before = saved.get(name, tree.original[name])
            sys.stdout.writelines(difflib.unified_diff(
                before.splitlines(True), text.splitlines(True),
                f'a/{name}', f'b/{name}'))
        tree.restore(saved)


def _extra_texts(paths):
    for path in paths:
        names = list(lint.tree_files(path)) if os.path.isdir(path) else [path]
        for name in names:
            with open(name, encoding='utf-8') as file:
                yield name, file.read()


def cmd_lint(args):
    all_series = [load_series(args.patches, name)
                  for name in series_names(args.patches)]
    complaints = [c for series in all_series for c in lint.style(series)]
    if args.against:
        texts = [t for s in all_series for t in lint.own_texts(s)]
        texts += list(_extra_texts(args.path))
        for tree in args.against:
            Tree(tree)
            for where, name, count, run in lint.copied(texts, tree):
                complaints.append(
                    f'{where}: {lint.RUN} tokens as in {tree}/{name} '
                    f'({count} files): {run}')
    for complaint in complaints:
        print(complaint)
    return 4 if complaints else 0


def cmd_matrix(args):
    all_series = [load_series(args.patches, name)
                  for name in series_names(args.patches)]
    trees = []
    for item in args.tree:
        label, _, path = item.rpartition('=')
        trees.append((label or Tree(path).version, path))
    text = table.render(table.matrix(trees, all_series), all_series)
    if args.update:
        table.update(args.update, text)
    else:
        print(text, end='')


class Parser(argparse.ArgumentParser):
    """A wrong command line must not look like a verdict of check."""

    def error(self, message):
        self.print_usage(sys.stderr)
        self.exit(4, f'{self.prog}: {message}\n')


def parser():
    top = Parser(
        prog='qport', description=DESCRIPTION, epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    top.add_argument('--patches', default=PATCHES, metavar='DIR',
                     help='where the series are (default: %(default)s)')
    sub = top.add_subparsers(dest='command', required=True, metavar='COMMAND')

    def command(name, run, text, *positional):
        one = sub.add_parser(name, help=text, description=text)
        one.set_defaults(run=run)
        for arg in positional:
            one.add_argument(arg)
        return one

    command('list', cmd_list, 'name the series and their patches')
    one = command('check', cmd_check, 'say whether a series fits a tree',
                  'series', 'tree')
    one.add_argument('--json', action='store_true', help='for programs')
    command('diff', cmd_diff, 'print the whole change of a series',
            'series', 'tree')
    one = command('apply', cmd_apply, 'commit a series on a new branch',
                  'series', 'tree')
    one.add_argument('--branch', required=True, help='branch to make')
    one.add_argument('--no-checks', action='store_true',
                     help='do not run checkpatch and qapi-gen of the tree')
    one = command('mails', cmd_mails, 'write a series as mails',
                  'series', 'tree')
    one.add_argument('-o', '--output', required=True, metavar='DIR')
    one.add_argument('--cover', action='store_true',
                     help='with a cover letter')
    one.add_argument('-v', '--reroll-count', type=int, metavar='N')
    command('explain', cmd_explain, 'show what a hunk does to a tree',
            'hunk', 'tree')
    one = command('lint', cmd_lint, 'check the series files')
    one.add_argument('--against', action='append', default=[], metavar='TREE',
                     help='compare with an upstream tree, may be repeated')
    one.add_argument('path', nargs='*', help='compare these files too')
    one = command('matrix', cmd_matrix, 'all series against many trees')
    one.add_argument('tree', nargs='+', metavar='[LABEL=]TREE')
    one.add_argument('--update', metavar='FILE',
                     help='renew the table in FILE')
    return top


def main(argv=None):
    args = parser().parse_args(argv)
    try:
        return args.run(args) or 0
    except PortError as err:
        note(str(err))
        return 4
    except KeyboardInterrupt:
        note('interrupted')
        return 4
