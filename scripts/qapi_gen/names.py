# SPDX-License-Identifier: GPL-2.0-or-later
"""How names of the schema become names in C."""

import re

# Words that a C compiler or its predefined macros keep for themselves; as members they get a "q_" in front.
RESERVED = frozenset('''
    asm auto bool break case char const continue default do double else enum errno extern false float for goto if
    inline int linux long register restrict return short signed sizeof static struct switch true typedef typeof union
    unix unsigned void volatile while _Bool and or not xor mips sparc i386 interface
'''.split())


def c_name(name, protect=True):
    result = re.sub(r'[^A-Za-z0-9_]', '_', name)
    if protect and (result in RESERVED or result[0].isdigit()):
        return 'q_' + result
    return result


def snake(camel):
    """BlockdevAioOptions becomes BLOCKDEV_AIO_OPTIONS, QMPCapability becomes QMP_CAPABILITY."""
    spaced = re.sub(r'([a-z0-9])([A-Z])', r'\1_\2', camel)
    spaced = re.sub(r'([A-Z]+)([A-Z][a-z])', r'\1_\2', spaced)
    return spaced.replace('-', '_').upper()


def enum_constant(enum, member):
    prefix = enum.prefix or snake(enum.name)
    return f'{prefix}_{c_name(member, protect=False).upper()}'


def guard(name):
    return re.sub(r'[^A-Za-z0-9]', '_', name).upper()


def c_string(text):
    return '"' + text.replace('\\', '\\\\').replace('"', '\\"') + '"'
