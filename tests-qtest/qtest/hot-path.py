#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Look at the machine code of the path between ring and kernel: no locked instruction, no allocation, no mutex.

usage: hot-path.py BINARY

Prints TAP. Functions that the compiler put into their callers are looked at there. Skipped without objdump.
"""
import re
import shutil
import subprocess
import sys

# Each function, and what is known to be in it away from the path of a read or write, with the reason.
ONCE_A_BATCH = {'split_flush': 'barrier', 'packed_flush': 'barrier', 'queue_interrupt': 'ISR bit, when it is not set yet',
                'pci_msix_notify': 'pending bit, when the vector is masked'}
OFF_THE_PATH = {'file_submit': (r'lock add', 'counters of discards')}
PATH = '''virtio_blk_handle_queue take_batch virtqueue_pop_batch split_pop_batch packed_pop_batch virtio_blk_parse
    virtio_blk_submit virtio_blk_merge_add virtio_blk_merge_flush blk_submit block_submit raw_submit file_submit batch_add
    native_hand_over aio_kaio_reap engine_judge channel_finish virtio_blk_done virtio_blk_complete virtio_blk_finish
    virtqueue_fill split_fill packed_fill virtio_queue_flush_soon aio_bh_schedule virtqueue_flush'''.split()
MUST_BE_THERE = {'virtio_blk_handle_queue', 'virtqueue_pop_batch', 'blk_submit', 'virtio_blk_finish', 'virtqueue_fill'}
BAD = re.compile(r'\block\b|\bxchg\b.*\(|\bcall\w*\b.*<(g_malloc|g_new|g_slice|malloc|calloc|realloc|posix_memalign|pthread_mutex)')
START = re.compile(r'^[0-9a-f]+ <([^>]+)>:$')


def disassemble(binary):
    """Function name -> instructions; the parts that the compiler split off belong to their function."""
    text = subprocess.run(['objdump', '-d', '--no-show-raw-insn', binary], capture_output=True, text=True, check=True).stdout
    found, at = {}, []
    for line in text.splitlines():
        m = START.match(line)
        if m:
            # Cold parts hold error messages and the like.
            at = [] if '.cold' in m.group(1) else found.setdefault(m.group(1).split('.')[0], [])
        elif '\t' in line:
            at.append(line.split('\t', 1)[1].strip())
    return found


def main():
    if len(sys.argv) != 2 or sys.argv[1] in ('-h', '--help'):
        print(__doc__)
        return 0
    if not shutil.which('objdump'):
        print('1..0 # SKIP no objdump')
        return 0
    code = disassemble(sys.argv[1])
    print(f'1..{len(PATH) + 1}')
    missing = sorted(MUST_BE_THERE - set(code))
    print(f"{'not ok' if missing else 'ok'} 1 /hot-path/functions-are-there {' '.join(missing)}".rstrip())
    for no, name in enumerate(PATH, 2):
        if name not in code:
            print(f'ok {no} /hot-path/{name} # SKIP part of its caller')
            continue
        bad = [i for i in code[name] if BAD.search(i)]
        if name in OFF_THE_PATH:
            bad = [i for i in bad if not re.search(OFF_THE_PATH[name][0], i)]
        print(f"{'not ok' if bad else 'ok'} {no} /hot-path/{name}")
        for i in bad:
            print(f'# {i}')
    for name, why in ONCE_A_BATCH.items():
        print(f'# not looked at: {name} ({why})')
    return 0


sys.exit(main())
