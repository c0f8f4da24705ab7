# SPDX-License-Identifier: GPL-2.0-or-later
"""Decide for each patch what a tree makes of it, and do it in memory."""

from . import Refused
from .docs import TEXT_OPS
from .ops import C_OPS
from .tree import probe_holds

APPLIES, UPSTREAM, PARTLY, UNSUPPORTED = 0, 1, 2, 3
VERDICTS = {APPLIES: 'applies', UPSTREAM: 'already upstream',
            PARTLY: 'partly upstream', UNSUPPORTED: 'unsupported'}


class Outcome:
    """What became of one patch: its state, a reason, the files it changed."""

    def __init__(self, patch, state, reason='', files=None, shapes=None):
        self.patch = patch
        self.state = state      # 'applies', 'upstream' or 'refused'
        self.reason = reason
        self.files = files or {}
        self.shapes = shapes or {}


def _with_since(value, tree):
    """The version a new interface appears in is known only with the tree."""
    if isinstance(value, str):
        return value.replace('@SINCE@', tree.since)
    if isinstance(value, dict):
        return {k: _with_since(v, tree) for k, v in value.items()}
    return value


def _run_shape(tree, shape, name):
    """All edits of a shape on one file; returns the new text."""
    for probe in shape.get('when', []):
        if not probe_holds(tree, probe):
            raise Refused('its condition does not hold')
    text, holes = tree.read(name), {}
    for edit in shape['edit']:
        edit = _with_since(edit, tree)
        run = C_OPS.get(edit['op']) or TEXT_OPS[edit['op']]
        text = run(text, edit, holes)
    return text


def run_hunk(tree, hunk):
    """Apply a hunk to the overlay; returns the name of the shape that fit.

    A hunk whose own condition does not hold is left out.
    """
    if not all(probe_holds(tree, probe) for probe in hunk.get('when', [])):
        return 'left out'
    name = tree.pick(hunk['file'])
    if name is None:
        names = hunk['file']
        names = names if isinstance(names, str) else ' or '.join(names)
        raise Refused(f'hunk {hunk["id"]}: no file {names}')
    reasons = []
    for shape in hunk['shape']:
        try:
            text = _run_shape(tree, shape, name)
        except Refused as err:
            reasons.append(str(err) if len(hunk['shape']) == 1
                           else f'[{shape["name"]}] {err}')
            continue
        tree.write(name, text)
        return shape['name']
    raise Refused(f'hunk {hunk["id"]}: {name}: ' + '; '.join(reasons))


def _gate(tree, owner):
    """The reason why a forbid or require probe stops a patch or series."""
    for probe in owner.forbid:
        if probe_holds(tree, probe):
            return probe['reason']
    for probe in owner.require:
        if not probe_holds(tree, probe):
            return probe['reason']
    return None


def is_upstream(tree, patch):
    return all(probe_holds(tree, probe) for probe in patch.upstream)


def run_patch(tree, patch):
    """Evaluate one patch; on refusal the overlay is as it was."""
    if is_upstream(tree, patch):
        return Outcome(patch, 'upstream')
    reason = _gate(tree, patch)
    if reason:
        return Outcome(patch, 'refused', reason)
    saved = tree.snapshot()
    shapes = {}
    try:
        for hunk in patch.hunks:
            shapes[hunk['id']] = run_hunk(tree, hunk)
        for probe in patch.post:
            if not probe_holds(tree, probe):
                raise Refused(f'postcondition on {probe["file"]} fails')
        if not is_upstream(tree, patch):
            raise Refused('the result is not recognised as patched')
    except Refused as err:
        tree.restore(saved)
        return Outcome(patch, 'refused', str(err), None, shapes)
    return Outcome(patch, 'applies', '', tree.changes(saved), shapes)


def run_series(tree, series):
    """Evaluate a series in order: (verdict, outcomes, reason)."""
    pending = [p for p in series.patches if not is_upstream(tree, p)]
    if not pending:
        done = [Outcome(p, 'upstream') for p in series.patches]
        return UPSTREAM, done, 'every patch is upstream'
    reason = _gate(tree, series)
    if reason:
        return UNSUPPORTED, [], reason
    outcomes = []
    for patch in series.patches:
        outcome = run_patch(tree, patch)
        outcomes.append(outcome)
        if outcome.state == 'refused':
            return UNSUPPORTED, outcomes, f'{patch.slug}: {outcome.reason}'
    states = {o.state for o in outcomes}
    if states == {'applies'}:
        return APPLIES, outcomes, f'{len(outcomes)} patches'
    there = [o.patch.slug for o in outcomes if o.state == 'upstream']
    return PARTLY, outcomes, 'upstream already: ' + ', '.join(there)
