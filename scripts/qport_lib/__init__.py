# SPDX-License-Identifier: GPL-2.0-or-later
"""Carry the series under patches/ to a QEMU checkout as ordinary commits."""


class PortError(Exception):
    """Something the user must know; the text is printed as one line."""


class Refused(PortError):
    """A hunk does not fit the tree; nothing of its patch may be applied."""
