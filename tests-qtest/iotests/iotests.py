# SPDX-License-Identifier: GPL-2.0-or-later
"""For iotests in Python: a VM with QMP and qtest sockets, images, and output that does not vary."""
import json
import os
import re
import socket
import subprocess
import sys

TEST_DIR = os.environ['TEST_DIR']
SOCK_DIR = os.environ['SOCK_DIR']
QEMU_PROG = os.environ['QEMU_PROG']
BUILD_DIR = os.environ['BUILD_DIR']


def notrun(reason):
    """End the test without a verdict."""
    with open(os.environ['NOTRUN'], 'w', encoding='utf-8') as f:
        f.write(reason)
    sys.exit(0)


def need_engine(*engines):
    """End the test if one cannot be had here, by this build, by the kernel or in this folder."""
    for engine in engines:
        probe = make_img('probe', 4096)
        p = subprocess.run([QEMU_PROG, '-M', 'none', '-nodefaults', '-display', 'none', '-accel', 'qtest', '-qmp', 'stdio',
                            '-blockdev', f'file,node-name=f,filename={probe},cache.direct=on,aio={engine}'],
                           input="{'execute': 'qmp_capabilities'}{'execute': 'quit'}", stdout=subprocess.DEVNULL,
                           stderr=subprocess.PIPE, text=True, check=False, timeout=60)
        os.unlink(probe)
        if p.returncode:
            notrun(p.stderr.strip().split(': ')[-1])


def path(name):
    return os.path.join(TEST_DIR, name)


def make_img(name, size):
    full = path(name)
    with open(full, 'wb') as f:
        f.truncate(size)
    return full


def filtered(text):
    text = text.replace(TEST_DIR, 'TEST_DIR').replace(SOCK_DIR, 'SOCK_DIR')
    text = re.sub(r'#block\d{3,}', 'NODE_NAME', text)
    text = re.sub(r'"(seconds|microseconds|thread-id|actual-size)": \d+', r'"\1": N', text)
    return re.sub(r'^qemu-system-x86_64:', 'QEMU_PROG:', text, flags=re.M)


def log(what):
    """Print; objects as JSON with sorted keys."""
    text = what if isinstance(what, str) else json.dumps(what, sort_keys=True)
    print(filtered(text), flush=True)


class Stream:
    """Lines over a socket that the binary connects to."""

    def __init__(self, name):
        self.path = os.path.join(SOCK_DIR, name)
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen(1)
        self.listener.settimeout(0.1)
        self.file = None

    def accept(self, process):
        """Wait for the binary to connect, for as long as it lives."""
        for _ in range(600):
            try:
                conn, _ = self.listener.accept()
                break
            except TimeoutError:
                if process.poll() is not None:
                    raise
        else:
            raise TimeoutError(f'{self.path}: no connection')
        conn.settimeout(60)
        self.file = conn.makefile('rw', encoding='utf-8', newline='\n')

    def send(self, line):
        self.file.write(line + '\n')
        self.file.flush()

    def receive(self):
        line = self.file.readline()
        if not line:
            raise EOFError(f'{self.path}: the other side has closed')
        return line.rstrip('\r\n')


class VM:
    """The binary under test; a context manager that ends it."""

    count = 0

    def __init__(self, *args, machine='pc'):
        self.args = ['-nodefaults', '-display', 'none', '-accel', 'qtest', '-machine', machine, *args]
        self.events = []

    def __enter__(self):
        VM.count += 1
        tag = str(VM.count)
        self.qmp_stream = Stream(f'qmp-{tag}')
        self.qtest_stream = Stream(f'qtest-{tag}')
        command = [QEMU_PROG, '-chardev', f'socket,id=mon,path={self.qmp_stream.path}',
                   '-object', 'monitor-qmp,id=qmp,chardev=mon',
                   '-qtest', f'unix:{self.qtest_stream.path}', '-qtest-log', 'none', *self.args]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        try:
            self.qmp_stream.accept(self.process)
            self.qtest_stream.accept(self.process)
        except OSError:
            self.process.kill()
            log(self.process.communicate()[1])
            raise
        self.qmp_stream.receive()
        self.qmp('qmp_capabilities')
        return self

    def __exit__(self, *exc):
        if self.process.poll() is None:
            self.process.terminate()
        _, err = self.process.communicate(timeout=60)
        if err:
            log(err.rstrip('\n'))
        if self.process.returncode:
            log(f'exit status {self.process.returncode}')

    def qmp(self, command, **arguments):
        """The reply; '_' in argument names stands for '-'."""
        request = {'execute': command}
        if arguments:
            request['arguments'] = {k.replace('_', '-'): v for k, v in arguments.items()}
        self.qmp_stream.send(json.dumps(request))
        while True:
            reply = json.loads(self.qmp_stream.receive())
            if 'event' not in reply:
                return reply
            self.events.append(reply)

    def qmp_log(self, command, **arguments):
        log(f'{command} {json.dumps(arguments, sort_keys=True)}' if arguments else command)
        reply = self.qmp(command, **arguments)
        log(reply)
        return reply

    def event(self, name):
        """Wait for the next event of this name."""
        while True:
            for i, e in enumerate(self.events):
                if e['event'] == name:
                    return self.events.pop(i)
            self.events.append(json.loads(self.qmp_stream.receive()))

    def hmp(self, line):
        return self.qmp('human-monitor-command', command_line=line)['return'].replace('\r\n', '\n')

    def qtest(self, line):
        """One command; IRQ messages on the way are dropped."""
        self.qtest_stream.send(line)
        while True:
            reply = self.qtest_stream.receive()
            if not reply.startswith('IRQ '):
                return reply

    def qtest_value(self, line):
        return int(self.qtest(line).split()[1], 16)


def run_to_end(*args):
    """Run the binary until it ends by itself; its output and status."""
    p = subprocess.run([QEMU_PROG, '-nodefaults', '-display', 'none', '-accel', 'qtest', *args], check=False,
                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
    return p.stdout, p.returncode
